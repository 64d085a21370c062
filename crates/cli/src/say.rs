//! Printing that never ends the process: a reader that has gone (`| head`) or a full disk behind a redirection must not
//! cost what was computed. Commands whose output is the result use `text::print`, which reports other errors.

/// `println!` that ignores errors.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($arg)*);
    }};
}

/// `eprintln!` that ignores errors.
#[macro_export]
macro_rules! say_err {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($arg)*);
    }};
}
