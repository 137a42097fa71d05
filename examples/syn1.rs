fn main() -> querent::Result<()> {
    use querent::nmppg::*;
    let engine = querent::Engine::cpu();
    let data = querent::data::synthetic::syn1(0, [60000, 10000, 10000])?;
    for batch in [128, 512, 1024] {
        let mut t = Trainer::new(&engine, &data, Config { batch, ..Config::new(0.02) })?;
        t.warm_up(100);
        let s = std::time::Instant::now();
        t.warm_up(400);
        println!("warm {:.0}/s", 400.0 * batch as f64 / s.elapsed().as_secs_f64());
        t.set_stage(Stage { tau_soft: 0.5, lambda: 0.01 })?;
        let s = std::time::Instant::now();
        t.steps(100);
        println!("step {:.0}/s", 100.0 * batch as f64 / s.elapsed().as_secs_f64());
        let s = std::time::Instant::now();
        t.evaluate_blocking(Which::Validation)?;
        println!("eval {:.0}/s", 10000.0 / s.elapsed().as_secs_f64());
    }
    Ok(())
}
