//! The guide: how to use this crate, one task per page, and how it is built.
//!
//! | page | answers |
//! |---|---|
//! | [`reading`] | Which type reads a file in memory, on disk, in a map, or behind a bus? How do I get `f32`s, rows and slices? |
//! | [`writing`] | How do I write a file, stream data into it, and save it so that a crash leaves the old file? |
//! | [`sharded`] | How do I read, check and write a model of several files? |
//! | [`embedded`] | How do I use it without an allocator, and how much flash, RAM and stack does it take? |
//! | [`program`] | What does `safetensor` do, and what can scripts rely on? |
//! | [`limits`] | What is accepted and refused, and what bounds time and memory? |
//! | [`migrating`] | What changes when I come from the crate `safetensors`? |
//! | [`performance`] | How fast is it, and which command measures that? |
//! | [`architecture`] | How is the code organised, and where does a change belong? |
//!
//! The examples are tests: `cargo test --doc guide` runs them.

// Only rustdoc sees these modules. The imports make short intra-doc links work in the pages.

pub mod reading {
    #![doc = include_str!("reading.md")]
    use crate::*;
}
pub mod writing {
    #![doc = include_str!("writing.md")]
    use crate::*;
}
pub mod sharded {
    #![doc = include_str!("sharded.md")]
    use crate::*;
}
pub mod embedded {
    #![doc = include_str!("embedded.md")]
    use crate::*;
}
pub mod program {
    #![doc = include_str!("program.md")]
    use crate::*;
}
pub mod limits {
    #![doc = include_str!("limits.md")]
    use crate::*;
}
pub mod migrating {
    #![doc = include_str!("migrating.md")]
    use crate::*;
}
pub mod performance {
    #![doc = include_str!("performance.md")]
    use crate::*;
}
pub mod architecture {
    #![doc = include_str!("architecture.md")]
    use crate::*;
}
