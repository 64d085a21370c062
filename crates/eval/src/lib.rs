//! n@k with confidence intervals, and reports.
