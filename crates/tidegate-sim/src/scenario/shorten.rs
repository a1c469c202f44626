use super::{Fault, Scenario, Wave};

impl Scenario {
    /// Its short form, or itself where it has none.
    #[must_use]
    pub fn shortened(&self) -> Self {
        match self.short {
            Some(short) => {
                Self { settle_s: short.settle_s, short: None, ..self.lasting(short.duration_s) }
            }
            None => self.clone(),
        }
    }

    /// The same in another time: phases, faults and waves are as long in relation to the whole as they were.
    #[must_use]
    pub fn lasting(&self, duration_s: f64) -> Self {
        let by = duration_s / self.duration_s;
        let fault = |fault: &Fault| Fault {
            from_s: fault.from_s * by,
            until_s: fault.until_s * by,
            ..fault.clone()
        };
        Self {
            duration_s,
            faults: self.faults.iter().map(fault).collect(),
            wave: self.wave.map(|wave| wave.scaled(by)),
            ..self.clone()
        }
    }
}

// === impl Wave ===

impl Wave {
    fn scaled(self, by: f64) -> Self {
        match self {
            Self::Square { high, low, period_s } => {
                Self::Square { high, low, period_s: period_s * by }
            }
            Self::Sawtooth { peak, period_s } => Self::Sawtooth { peak, period_s: period_s * by },
            Self::Bursts { high, low, mean_s } => Self::Bursts { high, low, mean_s: mean_s * by },
        }
    }
}
