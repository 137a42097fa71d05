// Random bits as a pure function of what they are for: Threefry-4x32 with 13 rounds
// (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"). The key is
// (seed, seed, stream, step), the counter (instance, t, block, 0).

fn rotate(x: u32, n: u32) -> u32 {
    return (x << n) | (x >> (32u - n));
}
fn even_round(x: vec4<u32>, a: u32, b: u32) -> vec4<u32> {
    let x0 = x.x + x.y;
    let x2 = x.z + x.w;
    return vec4(x0, rotate(x.y, a) ^ x0, x2, rotate(x.w, b) ^ x2);
}
fn odd_round(x: vec4<u32>, a: u32, b: u32) -> vec4<u32> {
    let x0 = x.x + x.w;
    let x2 = x.z + x.y;
    return vec4(x0, rotate(x.y, b) ^ x2, x2, rotate(x.w, a) ^ x0);
}
fn threefry(k: vec4<u32>, counter: vec4<u32>) -> vec4<u32> {
    let k4 = 0x1bd11bdau ^ k.x ^ k.y ^ k.z ^ k.w;
    var x = counter + k;
    x = odd_round(even_round(x, 10u, 26u), 11u, 21u);
    x = odd_round(even_round(x, 13u, 27u), 23u, 5u);
    x += vec4(k.y, k.z, k.w, k4 + 1u);
    x = odd_round(even_round(x, 6u, 20u), 17u, 11u);
    x = odd_round(even_round(x, 25u, 10u), 18u, 20u);
    x += vec4(k.z, k.w, k4, k.x + 2u);
    x = odd_round(even_round(x, 10u, 26u), 11u, 21u);
    x = odd_round(even_round(x, 13u, 27u), 23u, 5u);
    x += vec4(k.w, k4, k.x, k.y + 3u);
    return even_round(x, 6u, 20u);
}
fn random_bits(stream: u32, instance: u32, t: u32, block: u32) -> vec4<u32> {
    let key = vec4(clock[SEED_LO], clock[SEED_HI], stream, clock[STEP]);
    return threefry(key, vec4(instance, t, block, 0u));
}

// A uniform number strictly between 0 and 1, on a grid of odd multiples of 2^-24: exact in f32.
fn unit(bits: u32) -> f32 {
    return (f32(bits >> 9u) + 0.5) * 1.1920928955078125e-7;
}

fn scramble(v: u32) -> u32 {
    var x = v;
    x = (x ^ (x >> 16u)) * 0x85ebca6bu;
    x = (x ^ (x >> 13u)) * 0xc2b2ae35u;
    return x ^ (x >> 16u);
}

// Where position i goes in the shuffle of 0..n keyed by the epoch: an eight-round Feistel network on
// the smallest even number of bits that holds n, applied again while the result is not below n. A
// bijection of the larger range walked this way is one of 0..n, so an epoch sees each row once.
fn shuffled_index(i: u32, n: u32) -> u32 {
    let half = (33u - countLeadingZeros(max(n, 2u) - 1u)) / 2u;
    let mask = (1u << half) - 1u;
    let key = vec4(clock[SEED_LO], clock[SEED_HI], STREAM_SHUFFLE, clock[EPOCH]);
    let a = threefry(key, vec4(0u, 0u, 0u, 0u));
    let b = threefry(key, vec4(1u, 0u, 0u, 0u));
    var x = i;
    loop {
        var l = x >> half;
        var r = x & mask;
        l ^= scramble(r ^ a.x) & mask;
        r ^= scramble(l ^ a.y) & mask;
        l ^= scramble(r ^ a.z) & mask;
        r ^= scramble(l ^ a.w) & mask;
        l ^= scramble(r ^ b.x) & mask;
        r ^= scramble(l ^ b.y) & mask;
        l ^= scramble(r ^ b.z) & mask;
        r ^= scramble(l ^ b.w) & mask;
        x = (l << half) | r;
        if (x < n) {
            break;
        }
    }
    return x;
}
