#include "validate.h"
#include <fstream>
#include <iostream>
#include <set>
#include <string>
int main(int argc, char** argv) {
    std::ifstream in(argv[1]);
    int n, x, last = 0;
    in >> n;
    bool sorted = false;
    for (int i = 4; i < argc; i++) sorted |= std::string(argv[i]) == "sorted";
    std::set<int> seen;
    while (std::cin >> x) {
        if (x < 1 || x > n || !seen.insert(x).second || (sorted && x < last)) return WRONG;
        last = x;
    }
    return (int)seen.size() == n && std::cin.eof() ? ACCEPTED : WRONG;
}
