use super::Origin;
use super::errors::{ConfigError, ErrorList};
use super::exposure;
use super::policies::AuthorizationPolicy;
use super::schema::{AnySetting, Setting, State};
use super::table::Table;
use std::net::SocketAddr;

/// Checks that compare settings. A check leaves out settings that are wrong by themselves: a comparison with
/// their default would only add noise.
pub fn run(table: &Table, errors: &mut ErrorList) {
    for list in table.lists() {
        list.check_length(errors);
    }
    admission(table, errors);
    exposure::run(table, errors);
    address_overlap(table, errors);
    upstream_count(table, errors);
    api_keys(table, errors);
    ingest(table, errors);
}

fn sound(settings: &[&dyn AnySetting]) -> bool {
    settings.iter().all(|setting| setting.state().is_sound)
}

/// Names a setting that bounds another one.
fn reference<T>(setting: &Setting<T>) -> String {
    format!("{} ({})", setting.state.key, setting.state.origin)
}

fn admission(table: &Table, errors: &mut ErrorList) {
    let settings = &table.admission;
    let global = &settings.global_limit;
    let global_limit = global.get();
    for limit in [&settings.high_limit, &settings.normal_limit, &settings.low_limit] {
        // A preset above a lowered global limit is clamped; an explicit number is a contradiction.
        if sound(&[limit, global]) && limit.state.is_given && limit.get() > global_limit {
            let allowed = format!("0 … {global_limit} messages, at most {}", reference(global));
            errors.push(limit.error(limit.get().to_string(), allowed));
        }
    }
    let reserve = &settings.critical_reserve;
    if sound(&[reserve, global]) && reserve.get() >= global_limit {
        let most = global_limit.saturating_sub(1);
        let allowed = format!("0 … {most} messages, less than {}", reference(global));
        errors.push(reserve.error(reserve.get().to_string(), allowed));
    }
    let (min, max) = (&settings.retry_after_min_ms, &settings.retry_after_max_ms);
    if sound(&[min, max]) && min.get() > max.get() {
        let allowed = format!("1 … {} ms, at most {}", max.get().as_millis(), reference(max));
        errors.push(min.error(min.get().as_millis().to_string(), allowed));
    }
}

fn ingest(table: &Table, errors: &mut ErrorList) {
    let settings = &table.ingest;
    let (min, max) = (&settings.window_slots_min, &settings.window_slots_max);
    if sound(&[min, max]) && min.get() > max.get() {
        let allowed = format!("at most {}, limited by {}", max.get(), reference(max));
        errors.push(min.error(min.get().to_string(), allowed));
    }
    let (connections, memory) = (&settings.connections_max, &settings.memory_mib);
    let (frame, line) = (&settings.frame_bytes_max, &settings.line_bytes_max);
    let is_chosen = [&connections.state, &frame.state, &line.state].iter().any(|it| it.is_given);
    let (most, memory_mib) = (settings.connections_most(), memory.get() >> 20);
    if sound(&[connections, memory, frame, line]) && is_chosen && connections.get() > most {
        let memory = &memory.state.key;
        let allowed = format!(
            "at most {most}: half of {memory} ({memory_mib} MiB) has to hold a frame and a line of each"
        );
        errors.push(connections.error(connections.get().to_string(), allowed));
    }
    let (clients, operators) = (&table.client.entries, &table.operator.entries);
    let has_tokens = clients.iter().any(|client| client.identity().has_token())
        || operators.iter().any(|operator| operator.identity().has_token());
    let asks = [settings.frames_port(), settings.lines_port()]
        .iter()
        .any(|port| port.asks_for_certificates(&table.tls));
    let has_certificates = clients.iter().any(|client| client.certificate.state.is_given)
        || operators.iter().any(|operator| operator.certificate.state.is_given);
    if settings.tokens_required.get() && !has_tokens && !(asks && has_certificates) {
        let allowed =
            "false while no [[client]] and no [[operator]] has a token: nobody could send";
        errors.push(settings.tokens_required.error("true", allowed));
    }
}

/// Every listener. A port has one owner.
fn addresses(table: &Table) -> [&Setting<SocketAddr>; 5] {
    let (listen, ingest) = (&table.listen, &table.ingest);
    [
        &listen.address,
        &listen.admin_address,
        &ingest.frames_address,
        &ingest.lines_address,
        &table.workers.address,
    ]
}

fn address_overlap(table: &Table, errors: &mut ErrorList) {
    let addresses = addresses(table);
    for (number, later) in addresses.iter().enumerate() {
        for earlier in &addresses[..number] {
            if sound(&[*earlier, *later]) && overlap(earlier.get(), later.get()) {
                let is_later = later.state.is_given;
                let (blamed, other) = if is_later { (later, earlier) } else { (earlier, later) };
                let allowed = format!("another port than {}", reference(other));
                errors.push(blamed.error(blamed.get().to_string(), allowed));
            }
        }
    }
}

/// Port 0 is any free port. An unspecified address takes the port on every address.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let (a_ip, b_ip) = (a.ip().to_canonical(), b.ip().to_canonical());
    let same_ip = a_ip == b_ip || a_ip.is_unspecified() || b_ip.is_unspecified();
    a.port() == b.port() && a.port() != 0 && same_ip
}

/// A key that is never sent is a contradiction. A replacement without a key is not: it removes the header.
fn api_keys(table: &Table, errors: &mut ErrorList) {
    let policy = &table.proxy.authorization;
    let mut keys = table.upstream.entries.iter().map(|upstream| &upstream.api_key_env);
    let Some(key) = keys.find(|setting| setting.state.is_given) else { return };
    if policy.state.is_sound && policy.get() != AuthorizationPolicy::Replace {
        let allowed = format!("a key beside {} = \"replace\", which sends it", policy.state.key);
        errors.push(key.error("a key that is never sent", allowed));
    }
}

/// Bits of a file's mode with which every user of the machine can read it.
const READABLE_BY_ALL: u32 = 0o004;

/// A plain token in a file of this mode must not be readable by everyone. One error, however many tokens it has.
pub fn exposed_file(table: &Table, mode: u32, errors: &mut ErrorList) {
    let clients = table.client.entries.iter().map(|client| &client.token.state);
    let operators = table.operator.entries.iter().map(|operator| &operator.token.state);
    let exposed = |state: &&State| state.is_given && matches!(state.origin, Origin::File { .. });
    let Some(first) = clients.chain(operators).find(exposed) else { return };
    let Origin::File { path, .. } = &first.origin else { return };
    if mode & READABLE_BY_ALL != 0 {
        let mode = mode & 0o7777;
        let given = format!("a token in a file that every user can read (mode {mode:04o})");
        let allowed = format!(
            "a file for its owner and group alone: chmod 640 {path}; or token_sha256 or token_env"
        );
        errors.push(ConfigError::new(&first.key, &first.origin, given, allowed));
    }
}

fn upstream_count(table: &Table, errors: &mut ErrorList) {
    let (setting, count) = (&table.routing.upstreams_max, table.upstream.entries.len());
    if setting.state.is_sound && count > setting.get() {
        let allowed = format!("at most {}, limited by {}", setting.get(), reference(setting));
        let (origin, given) = (&setting.state.origin, format!("{count} entries"));
        errors.push(ConfigError::new("upstream", origin, given, allowed));
    }
}
