use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};

/// Tables of the kernel with the TCP sockets of this network namespace.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
/// State of a socket that listens, as the tables write it.
const LISTENS: &str = "0A";

/// TCP ports on which this process listens. The kernel knows them all, also those that were chosen at the start.
///
/// # Errors
///
/// When the tables can't be read.
pub(super) fn own_ports() -> io::Result<BTreeSet<u16>> {
    let sockets = own_sockets()?;
    let mut ports = BTreeSet::new();
    for table in TABLES {
        let table = match File::open(table) {
            // A machine without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => BufReader::new(opened?),
        };
        for line in table.lines() {
            ports.extend(
                listener(&line?).filter(|(_, inode)| sockets.contains(inode)).map(|it| it.0),
            );
        }
    }
    Ok(ports)
}

/// Inodes of the sockets that this process has open.
fn own_sockets() -> io::Result<BTreeSet<u64>> {
    let links = fs::read_dir("/proc/self/fd")?.map_while(Result::ok);
    let inode = |link: fs::DirEntry| {
        let target = fs::read_link(link.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    Ok(links.filter_map(inode).collect())
}

/// Port and inode of a line of a table, if its socket listens.
fn listener(line: &str) -> Option<(u16, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let (_, port) = fields.nth(1)?.rsplit_once(':')?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?;
    (state == LISTENS).then_some(())?;
    Some((u16::from_str_radix(port, 16).ok()?, inode.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn listeners_are_found_and_connections_are_not() {
        let four = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = four.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let ports = own_ports().unwrap();
        assert!(ports.contains(&port), "{ports:?}");
        assert!(!ports.contains(&client.local_addr().unwrap().port()), "{ports:?}");
        if let Ok(six) = TcpListener::bind("[::1]:0") {
            assert!(own_ports().unwrap().contains(&six.local_addr().unwrap().port()));
        }
    }

    #[test]
    fn a_line_of_the_table_is_read() {
        let line = "   1: 0100007F:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000  \
                    1000        0 48226 1 0000000000000000 100 0 0 10 0";
        assert_eq!(listener(line), Some((8001, 48226)));
        assert_eq!(listener(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listener("  sl  local_address rem_address   st tx_queue"), None);
        assert_eq!(listener(""), None);
    }
}
