//! The program `segno-bench`; `segno bench` is the same inside the one binary.

use clap::Parser;

/// The allocator that the `segno` binary uses too: turns are many small allocations, which it serves about twice as fast.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    segno_bench::run(&segno_bench::Arguments::parse().command).await
}
