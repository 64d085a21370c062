def f():
    n = int(input())
    return sum(map(int, input().split())) / n
