fn main() {
    let g = hermetic::Sandbox::builder().seed(1).enter().unwrap();
    let o = std::process::Command::new("sh")
        .args(["-c", "echo $LD_PRELOAD $HERMETIC_CHILD; date; ls -la $LD_PRELOAD"])
        .output()
        .unwrap();
    println!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    println!("{:?}", g.findings());
}
