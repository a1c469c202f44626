use tidegate::rng::Rng;

/// Random draws of a seed: the same on every machine.
#[derive(Debug)]
pub struct Draws(Rng);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(Rng::from_seed(seed))
    }

    /// A uniform number in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        self.0.fraction()
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.0.next_u64() % bound as u64) as usize
    }

    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.fraction()).ln()
    }
}
