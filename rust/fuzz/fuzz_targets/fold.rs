#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    geomdp_fuzz::fold::run(data, &mut Default::default());
});
