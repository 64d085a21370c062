//! End-to-end tests of the built rlef command.
