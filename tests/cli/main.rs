//! Promise: the program says of every file what the library says, in the words, the JSON and the exit
//! codes that scripts rely on, and leaves nothing behind that is half written.

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
