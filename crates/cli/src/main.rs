//! Train and evaluate code models inside the loop in which they are used.
fn main() {}
