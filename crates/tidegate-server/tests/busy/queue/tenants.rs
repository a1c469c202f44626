//! Tenants that ask for very different amounts, all of the time, get equal parts of what is scarce.

use crate::support::{TestGateway, eventually};
use crate::upstream::Upstream;
use crate::waiting::{one_slot, send_with};

const LOUD: &str = "loud-0123456789abcdef";
const QUIET: &str = "quiet-0123456789abcdef";
/// Pairs of services that are watched.
const PAIRS: usize = 40;

/// Of ten requests for each two services, nine are the loud tenant's. The queue is full, and what does not fit is
/// refused.
#[tokio::test]
async fn tenants_at_nine_to_one_and_five_times_the_load_are_served_one_to_one() {
    let upstream = Upstream::closed().await;
    let clients = format!(
        "[[client]]\nname = \"loud\"\ntoken = \"{LOUD}\"\n\
         [[client]]\nname = \"quiet\"\ntoken = \"{QUIET}\"\n"
    );
    let gateway = TestGateway::start(&format!("{}{clients}", one_slot(20)), &[upstream.address]);
    let mut sent = Vec::new();
    for pair in 0..PAIRS {
        for number in 0..10 {
            let token = if number == 4 { QUIET } else { LOUD };
            sent.push(
                send_with(&gateway, &format!("/{token}"), &[("tidegate-token", token)]).await,
            );
        }
        for served in [2 * pair + 2, 2 * pair + 3] {
            upstream.let_one_through();
            eventually("the next is sent", || upstream.paths().len() == served).await;
        }
    }
    let paths = upstream.paths();
    let quiet = paths.iter().filter(|path| **path == format!("/{QUIET}")).count() as f64;
    let share = quiet / paths.len() as f64;
    // Within 15 % of one to one.
    assert!((0.425..=0.575).contains(&share), "{quiet} of {}", paths.len());
    upstream.open();
    for one in sent {
        let answer = one.await.unwrap();
        assert!(answer.status == 200 || answer.status == 503, "{}", answer.text());
    }
    gateway.balances().await;
}
