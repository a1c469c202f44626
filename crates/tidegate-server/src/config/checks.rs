use super::Anonymous;
use super::items::Items;
use super::mistakes::{Ledger, Mistake};
use super::settings::Settings;
use std::net::SocketAddr;

/// Everything that listens. A port has one owner.
const ADDRESSES: [&str; 4] =
    ["listen.address", "listen.admin_address", "ingest.frames_address", "ingest.lines_address"];

/// What no field can know alone. Fields that are wrong by themselves are left out: comparing what their
/// default has would only add noise.
pub(super) fn run(settings: &Settings, items: &Items, ledger: &mut Ledger) {
    priority_limits(settings, ledger);
    critical_reserve(settings, ledger);
    retry_bounds(settings, ledger);
    exposure(settings, items, ledger);
    anonymous(settings, items, ledger);
    forwarded(settings, ledger);
    admin_exposure(settings, ledger);
    address_overlap(settings, ledger);
    tls_pair(settings, ledger);
    destinations(settings, items, ledger);
    ingest_exposure(settings, ledger);
    ingest_windows(settings, ledger);
    ingest_memory(settings, ledger);
}

fn destinations(settings: &Settings, items: &Items, ledger: &mut Ledger) {
    let key = "outbox.max_destinations";
    let (max, count) = (settings.size(key), items.of("upstream").count());
    if settings.are_sound(&[key]) && count > max {
        let allowed = format!("at most {max}, as {key} says ({})", settings.origin(key));
        ledger.add(Mistake::new(
            "upstream",
            settings.origin(key),
            format!("{count} entries"),
            allowed,
        ));
    }
}

/// A preset above a lowered global limit is fine, it is clamped; somebody's own number is a contradiction.
fn priority_limits(settings: &Settings, ledger: &mut Ledger) {
    let global_key = "admission.global_limit";
    let global: u64 = settings.get(global_key);
    for key in ["admission.high_limit", "admission.normal_limit", "admission.low_limit"] {
        let limit: u64 = settings.get(key);
        let comparable = settings.are_sound(&[key, global_key]) && settings.is_explicit(key);
        if comparable && limit > global {
            let allowed = format!(
                "0 … {global} messages, no more than {global_key} ({})",
                settings.origin(global_key)
            );
            ledger.add(Mistake::new(key, settings.origin(key), limit.to_string(), allowed));
        }
    }
}

fn critical_reserve(settings: &Settings, ledger: &mut Ledger) {
    let (key, global_key) = ("admission.critical_reserve", "admission.global_limit");
    let (reserve, global): (u64, u64) = (settings.get(key), settings.get(global_key));
    if settings.are_sound(&[key, global_key]) && reserve >= global {
        let allowed = format!(
            "0 … {} messages, less than {global_key} ({})",
            global.saturating_sub(1),
            settings.origin(global_key)
        );
        ledger.add(Mistake::new(key, settings.origin(key), reserve.to_string(), allowed));
    }
}

fn retry_bounds(settings: &Settings, ledger: &mut Ledger) {
    let (min_key, max_key) = ("admission.retry_after_min_ms", "admission.retry_after_max_ms");
    let (min, max): (u64, u64) = (settings.get(min_key), settings.get(max_key));
    if settings.are_sound(&[min_key, max_key]) && min > max {
        let allowed =
            format!("1 … {max} ms, no more than {max_key} ({})", settings.origin(max_key));
        ledger.add(Mistake::new(min_key, settings.origin(min_key), min.to_string(), allowed));
    }
}

/// Whoever reaches the port can spend what is behind it.
fn exposure(settings: &Settings, items: &Items, ledger: &mut Ledger) {
    let key = "listen.address";
    let address: SocketAddr = settings.get(key);
    let has_clients = items.of("client").next().is_some();
    if settings.are_sound(&[key]) && !is_loopback(address) && !has_clients {
        let allowed = "a loopback address while no client has a token: add a [[client]] with a \
                       token, or listen on 127.0.0.1";
        ledger.add(Mistake::new(key, settings.origin(key), address.to_string(), allowed));
    }
}

/// The default lets everybody in, which is right on loopback and nowhere else; and to let nobody in is no use.
fn anonymous(settings: &Settings, items: &Items, ledger: &mut Ledger) {
    let (key, address_key) = ("claims.anonymous", "listen.address");
    let address: SocketAddr = settings.get(address_key);
    let has_clients = items.of("client").next().is_some();
    let open = settings.are_sound(&[key, address_key]) && !is_loopback(address) && has_clients;
    if open && !settings.is_explicit(key) {
        let allowed = format!(
            "a decision of yours while {address_key} is {address}: \"refuse\", or the most that \
             clients without a token may claim"
        );
        ledger.add(Mistake::new(key, settings.origin(key), "nothing".to_owned(), allowed));
    }
    let refuses = matches!(settings.choice(key), Anonymous::Refuse);
    if settings.are_sound(&[key]) && refuses && !has_clients {
        let allowed =
            "\"high\", \"normal\" or \"low\" while there is no [[client]]: nobody could get in";
        ledger.add(Mistake::new(key, settings.origin(key), "\"refuse\"".to_owned(), allowed));
    }
}

/// The default believes what stands before it, which is right behind another proxy and nowhere else.
fn forwarded(settings: &Settings, ledger: &mut Ledger) {
    let (key, address_key) = ("proxy.forwarded", "listen.address");
    let address: SocketAddr = settings.get(address_key);
    let open = settings.are_sound(&[key, address_key]) && !is_loopback(address);
    if open && !settings.is_explicit(key) {
        let allowed = format!(
            "a decision of yours while {address_key} is {address}: \"replace\" when clients reach it \
             themselves, \"append\" behind another proxy, or \"off\""
        );
        ledger.add(Mistake::new(key, settings.origin(key), "nothing".to_owned(), allowed));
    }
}

fn admin_exposure(settings: &Settings, ledger: &mut Ledger) {
    let key = "listen.admin_address";
    let address: SocketAddr = settings.get(key);
    if !is_loopback(address) {
        let allowed = "a loopback address: reach it from elsewhere through a tunnel";
        ledger.add(Mistake::new(key, settings.origin(key), address.to_string(), allowed));
    }
}

/// Its protocols know no tokens.
fn ingest_exposure(settings: &Settings, ledger: &mut Ledger) {
    for key in ["ingest.frames_address", "ingest.lines_address"] {
        let address: SocketAddr = settings.get(key);
        if settings.are_sound(&[key]) && !is_loopback(address) {
            let allowed = "a loopback address: its senders have no tokens; let them come through a \
                           tunnel or a proxy that knows them";
            ledger.add(Mistake::new(key, settings.origin(key), address.to_string(), allowed));
        }
    }
}

fn ingest_windows(settings: &Settings, ledger: &mut Ledger) {
    let (key, max_key) = ("ingest.window_slots_min", "ingest.window_slots_max");
    let (min, max): (u64, u64) = (settings.get(key), settings.get(max_key));
    if settings.are_sound(&[key, max_key]) && min > max {
        let allowed = format!("at most {max}, as {max_key} says ({})", settings.origin(max_key));
        ledger.add(Mistake::new(key, settings.origin(key), min.to_string(), allowed));
    }
}

/// Of each connection a frame or a line may be there in part, and that is part of the memory.
fn ingest_memory(settings: &Settings, ledger: &mut Ledger) {
    let (key, memory_key) = ("ingest.connections_max", "ingest.memory_mib");
    let longest = ["ingest.frame_bytes_max", "ingest.line_bytes_max"];
    if !settings.are_sound(&[key, memory_key, longest[0], longest[1]]) {
        return;
    }
    let (connections, memory_mib): (u64, u64) = (settings.get(key), settings.get(memory_key));
    let each: u64 = longest.map(|key| settings.get::<u64>(key)).iter().sum();
    let most = super::ingest::connections_most(memory_mib, each);
    let chosen = settings.is_explicit(key) || longest.iter().any(|key| settings.is_explicit(key));
    if chosen && connections > most {
        let allowed = format!(
            "at most {most}: half of {memory_key} ({memory_mib} MiB) has to hold a frame and a line of each"
        );
        ledger.add(Mistake::new(key, settings.origin(key), connections.to_string(), allowed));
    }
}

fn address_overlap(settings: &Settings, ledger: &mut Ledger) {
    for (place, later) in ADDRESSES.iter().enumerate() {
        for earlier in &ADDRESSES[..place] {
            overlapping(settings, earlier, later, ledger);
        }
    }
}

fn overlapping(settings: &Settings, earlier: &str, later: &str, ledger: &mut Ledger) {
    let (first, second): (SocketAddr, SocketAddr) = (settings.get(earlier), settings.get(later));
    if settings.are_sound(&[earlier, later]) && overlap(first, second) {
        let (blamed, other) =
            if settings.is_explicit(later) { (later, earlier) } else { (earlier, later) };
        let given: SocketAddr = settings.get(blamed);
        let allowed = format!("another port than {other} ({})", settings.origin(other));
        ledger.add(Mistake::new(blamed, settings.origin(blamed), given.to_string(), allowed));
    }
}

/// Port 0 is whatever is free. An unspecified address takes the port on every address.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let (a_ip, b_ip) = (a.ip().to_canonical(), b.ip().to_canonical());
    let same_ip = a_ip == b_ip || a_ip.is_unspecified() || b_ip.is_unspecified();
    a.port() == b.port() && a.port() != 0 && same_ip
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

fn tls_pair(settings: &Settings, ledger: &mut Ledger) {
    let keys = ["listen.tls_cert", "listen.tls_key"];
    if !settings.are_sound(&keys) {
        return;
    }
    let [cert, key] = keys.map(|key| settings.optional::<String>(key).is_some());
    if cert != key {
        let (there, missing) = if cert { (keys[0], keys[1]) } else { (keys[1], keys[0]) };
        let allowed = format!("the path of a file beside {there}, or neither of them");
        ledger.add(Mistake::new(missing, settings.origin(there), "nothing", allowed));
    }
}
