//! Random interleavings of everything that can happen to a dispatcher, with executors that keep their own slots, a
//! ledger, answers that are late, lost or doubled, crashes and other managers.

mod checks;
mod executors;
mod ledger;
mod model;

use model::{Model, Op};
use proptest::prelude::*;
use tidegate_core::capacity::Placement;

fn op() -> impl Strategy<Value = Op> {
    let any = any::<usize>;
    prop_oneof![
        8 => (0..4_u8, 0..2_u16).prop_map(|(priority, runtime)| Op::Submit { priority, runtime }),
        16 => any().prop_map(Op::Deliver),
        3 => any().prop_map(Op::LoseAnswer),
        3 => any().prop_map(Op::DoubleAnswer),
        8 => any().prop_map(Op::Finish),
        2 => any().prop_map(Op::Withdraw),
        1 => any().prop_map(Op::Down),
        1 => any().prop_map(Op::Crash),
        3 => (any(), 0..3_u8).prop_map(|(executor, serves)| Op::Up { executor, serves }),
        3 => any().prop_map(Op::AskReport),
        2 => any().prop_map(Op::Foreign),
        10 => (0..8_u8).prop_map(|luck| Op::Ledger { available: luck > 0 }),
        2 => Just(Op::LedgerChanged),
        3 => (1..2_000_u64).prop_map(Op::Advance),
    ]
}

fn run(placement: Placement, maxes: &[u32], ops: &[Op]) {
    let mut model = Model::new(placement, maxes);
    for op in ops {
        model.step(op);
    }
    model.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_doubled_forgotten_or_overtaken(
        maxes in prop::collection::vec(1..4_u32, 1..5),
        ops in prop::collection::vec(op(), 1..200),
    ) {
        for placement in Placement::ALL {
            run(placement, &maxes, &ops);
        }
    }
}
