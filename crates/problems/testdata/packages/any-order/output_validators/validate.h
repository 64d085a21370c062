const int ACCEPTED = 42, WRONG = 43;
