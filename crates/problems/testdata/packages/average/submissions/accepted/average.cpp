#include <cstdio>
int main() {
    int n;
    double sum = 0, x;
    std::scanf("%d", &n);
    for (int i = 0; i < n; i++) { std::scanf("%lf", &x); sum += x; }
    std::printf("%.9f\n", sum / n);
}
