n = int(input())
for i in range(10 ** 12):
    if i == n * 10 ** 9:
        print(n)
