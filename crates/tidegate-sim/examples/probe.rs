//! x
use tidegate_core::window::*;
use tidegate_sim::pipeline::*;
fn main() {
    let seed = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1);
    print!("{}", compare(&[Law::Seed, Law::Cubic], seed).unwrap());
}
