//! Whoever answers: the local model, a script, a person.
