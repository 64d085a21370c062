print(1 // (11 - int(input())))
