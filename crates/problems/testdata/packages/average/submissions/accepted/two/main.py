from b import f
print(f())
