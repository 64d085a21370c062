import sys

import numpy as np

numbers = np.array(sys.stdin.read().split()[1:], dtype=float).reshape(10, -1)
print(numbers.mean(axis=0).round(3).tolist())
print(np.linalg.norm(numbers @ numbers.T).round(3))
