n = int(input())
1 // (11 - n)
print(n)
