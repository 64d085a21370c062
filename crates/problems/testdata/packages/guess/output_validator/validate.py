import sys

with open(sys.argv[1]) as file:
    n = int(file.read())
args = sys.argv[4:]
distance = int(args[args.index("distance") + 1]) if "distance" in args else 0
try:
    x = int(sys.stdin.read())
except ValueError:
    sys.exit(43)
sys.exit(42 if abs(x - n) <= distance else 43)
