//! Tests of the notes program from Rust: the program, and the git that it starts, are children of the test's sandbox, so they
//! see its clock and its network.

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs;
    use std::io::ErrorKind;
    use std::net::TcpListener;
    use std::path::PathBuf;
    use std::process::Command;
    use std::thread;
    use std::time::Duration;

    const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../notes.py");
    const WHO: &str = "hermetic";
    const WHERE: &str = "hermetic@example.invalid";

    /// An empty place for one test.
    struct Place(PathBuf);

    impl Place {
        fn new(test: &str) -> Place {
            let folder = env::temp_dir().join(format!("notes-example-{}-{test}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Place(folder)
        }

        /// A command that sees this place, and nobody's configuration.
        fn command(&self, program: &str) -> Command {
            let mut command = Command::new(program);
            command.env("HOME", &self.0).env("XDG_DATA_HOME", &self.0).env("GIT_CONFIG_NOSYSTEM", "1");
            command.env("GIT_AUTHOR_NAME", WHO).env("GIT_AUTHOR_EMAIL", WHERE);
            command.env("GIT_COMMITTER_NAME", WHO).env("GIT_COMMITTER_EMAIL", WHERE).env("TZ", "UTC");
            command
        }

        fn notes(&self, words: &[&str]) -> (bool, String) {
            let told = self.command("python3").arg(PROGRAM).args(words).output().unwrap();
            let text = [told.stdout, told.stderr].concat();
            (told.status.success(), String::from_utf8(text).unwrap().trim().to_owned())
        }

        fn log(&self, format: &str) -> String {
            let mut git = self.command("git");
            git.arg("-C").arg(self.0.join("notes")).args(["log", "--reverse", &format!("--format={format}")]);
            String::from_utf8(git.output().unwrap().stdout).unwrap().trim().to_owned()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[hermetic::test]
    fn the_first_note_is_number_one() {
        let place = Place::new("first");
        assert_eq!(place.notes(&["add", "buy plums"]), (true, "1".to_owned()));
        assert_eq!(place.notes(&["list"]), (true, "buy plums".to_owned()));
    }

    /// The same commit on every run and every machine, because git is told the same time.
    #[hermetic::test(now = "2024-02-28T23:00:00Z")]
    fn notes_are_dated_by_the_clock_of_the_test() {
        let place = Place::new("dated");
        place.notes(&["add", "buy plums"]);
        thread::sleep(Duration::from_secs(3600));
        place.notes(&["add", "buy pears"]);
        assert_eq!(place.log("%cs %s"), "2024-02-28 buy plums\n2024-02-29 buy pears");
        let ids = place.log("%H");
        let again = Place::new("again");
        hermetic::current().unwrap().set("2024-02-28T23:00:00Z").unwrap();
        again.notes(&["add", "buy plums"]);
        assert!(ids.starts_with(&again.log("%H")));
    }

    /// A server stands ready where git is led, and no connection comes: the program's children are refused as well.
    #[hermetic::test(allow_loopback = false)]
    fn nothing_is_published() {
        let place = Place::new("published");
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let here = format!(
            "[url \"http://{}/\"]\n\tinsteadOf = https://notes.example.invalid/\n",
            server.local_addr().unwrap()
        );
        fs::write(place.0.join(".gitconfig"), here).unwrap();
        place.notes(&["add", "buy plums"]);
        let (is_done, told) = place.notes(&["publish"]);
        assert!(!is_done && told.contains("notes: git push"), "{told}");
        assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }
}
