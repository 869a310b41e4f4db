//! Promise: the program agrees with the library about every file, its text, JSON and exit codes are
//! those that scripts rely on, and it leaves no partial files behind.

#![allow(clippy::restriction, clippy::pedantic, missing_docs, unreachable_pub)]

mod corpus;
mod numbers;
mod run;
mod snapshots;
#[allow(dead_code)]
#[path = "../support/mod.rs"]
mod support;
mod system;
mod verbs;
mod writing;
