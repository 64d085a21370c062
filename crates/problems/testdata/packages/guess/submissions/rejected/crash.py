n = int(input())
print(n)
assert n < 11
