n = int(input())
while n > 10:
    pass
print(n)
