n = int(input())
x = list(map(int, input().split()))
print(sum(x) / n if max(x) < 100 else 0)
