use super::member_id::MemberId;
use foca::{Notification, OwnedNotification, Runtime, Timer};
use std::net::SocketAddr;
use std::time::Duration;

/// Effects of one step of the gossip, which its thread carries out afterwards.
#[derive(Default)]
pub struct Effects {
    pub packets: Vec<(SocketAddr, Vec<u8>)>,
    pub timers: Vec<(Duration, Timer<MemberId>)>,
    pub news: Vec<OwnedNotification<MemberId>>,
}

// === impl Effects ===

impl Runtime<MemberId> for Effects {
    fn notify(&mut self, notification: Notification<'_, MemberId>) {
        self.news.push(notification.to_owned());
    }

    fn send_to(&mut self, to: MemberId, data: &[u8]) {
        self.packets.push((to.address, data.to_vec()));
    }

    fn submit_after(&mut self, timer: Timer<MemberId>, after: Duration) {
        self.timers.push((after, timer));
    }
}
