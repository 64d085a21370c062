import collections
import heapq
import sys

n = int(sys.stdin.readline())
numbers = [int(x) for x in sys.stdin.readline().split()]
counts = collections.Counter(x % 10 for x in numbers)
print(n, sum(numbers), min(numbers), max(numbers))
for digit, count in sorted(counts.items())[:4]:
    print(digit, count)
print(*heapq.nlargest(5, numbers))
print(*heapq.nsmallest(5, numbers))
print("".join(chr(97 + x % 26) for x in numbers[:40]))
