//! The draw and what is around it, in one program: its files instantiate the same kernels, which take
//! most of the time to compile.

mod kernel;
mod keyed;
mod mechanism;
#[path = "../common/model.rs"]
mod model;
mod split;
mod tape;
mod top;
