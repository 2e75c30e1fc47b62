// Tables of case lines. Each line is the smallest input that shows the mistake named beside it.
#include "properties/domains/hard_cases.hpp"

#include <map>
#include <vector>

#include "properties/domains/turns.hpp"

namespace attest {
namespace {

// Tiles are taken to be 16, 32 or 64 wide: where an edge matters, the line says 65 or 33.
constexpr std::string_view kAttention[] = {
    "q=1x1x2x4 kv=1x1x4 causal fill=ramp",                         // a row that sees nothing
    "q=1x1x1x4 kv=1x2x4 causal fill=ramp",                         // diagonal of Tq != Tk
    "q=1x1x1x4 kv=1x1x4 fill=zero_query",                          // padded keys in the row sum
    "q=1x4x2x8 kv=2x3x8 fill=ramp",                                // which KV head
    "q=1x1x1x8 kv=1x65x8 fill=falling_maxima",                     // maximum of the last tile only
    "q=1x1x3x8 kv=1x65x8 fill=rising_maxima",                      // rescale
    "q=1x1x1x1 kv=1x1x1 scale=1 fill=logits_very_low",             // finite stand-in for -inf
    "q=1x1x2x4 kv=1x3x4 scale=1 fill=normal",                      // scale ignored
    "q=1x1x2x20 kv=1x5x3 fill=normal",                             // padded head_dim
    "q=1x1x2x65 kv=1x17x5 fill=normal",                            // one column beyond a tile
    "q=1x1x65x8 kv=1x65x8 causal fill=ramp",                       // diagonal across tiles
    "q=1x1x2x8 kv=1x65x8 causal fill=ramp",                        // loop bound of the tile
    "q=1x1x65x4 kv=1x1x4 causal fill=ramp",                        // whole tiles see nothing
    "q=2x1x1x4 kv=1x1x4 kv_len=0,1 fill=ramp",                     // an empty sequence
    "q=2x1x1x4 kv=1x1x4 kv_len=0,1 empty_lse=plus_inf fill=ramp",  // and its LSE
    "q=1x1x5x4 kv=1x16x4 mask fill=ramp seed=7",                   // mask, keys fill the tile
    "q=1x1x2x4 kv=1x9x4 mask fill=ramp seed=13",                   // pitch of a packed mask
    "q=1x1x3x4 kv=1x33x4 causal window=1,inf fill=ramp",           // window of two keys
    "q=1x1x2x4 kv=1x5x4 softcap=2 mask fill=peaky seed=7",         // cap after mask
    "q=1x3x1x4 kv=1x3x4 alibi fill=ramp",                          // distances, odd head count
    "q=1x2x2x4 kv=1x3x4 sinks lse=two fill=zero_query seed=3",     // sink and base
    "q=2x1x2x4 kv=1x2x4 q_len=1,2 fill=ramp",                      // offsets by length
    "q=1x1x2x2 kv=1x2x2 in=f16 out=f16 scale=0.0001 fill=overflow_f16",  // products in f16
    "q=1x1x1x4 kv=1x2x4 in=f16 out=f16 fill=large_values",               // accumulator in f16
    "q=1x2x2x4 kv=1x2x4 causal bias fill=ramp",                          // rows packed over heads
    "q=1x1x1x4 kv=1x1x4 splits=2 fill=ramp",                             // a split without keys
    "q=1x1x1x8 kv=1x65x8 splits=2 fill=ramp",                            // split borders
    "q=1x1x1x8 kv=1x17x8 splits=2 sinks fill=zero_query seed=1",         // sink once per split
    "q=1x1x2x4 kv=1x3x4 causal splits=3 spare=2 fill=ramp",              // stale slots
    "q=1x1x128x4 kv=1x128x4 causal fill=ramp",                           // whole tiles of 128
    "q=2x1x1x4 kv=1x129x4 kv_len=128,127 fill=normal",                   // and by length
    "q=1x1x2x192 kv=1x3x160 in=bf16 out=f32 fill=normal",                // wide, another output
    "q=1x8x1x4 kv=1x2x4 softcap=0.25 scale=16 fill=normal",              // group, cap and scale
    "q=1x1x2x4 kv=1x5x4 bias fill=low_bias",                             // a bias that is no -inf
    // Rows that matrix units take: tiles of 64 by 64, or by 32 where rows are wide.
    "q=1x1x65x8 kv=1x65x8 in=bf16 out=bf16 causal fill=ramp",     // diagonal
    "q=1x2x17x72 kv=1x129x24 in=f16 out=f32 fill=normal",         // half a step of 16
    "q=1x1x9x8 kv=1x200x8 in=bf16 out=f32 fill=rising_maxima",    // rescale
    "q=1x1x3x136 kv=1x33x200 in=f16 out=f16 causal fill=normal",  // wide
    "q=2x2x5x8 kv=2x33x8 strided=q,k,v,o,lse,far fill=ramp",      // offsets of 32 bits
    "q=1x2x9x8 kv=2x65x8 in=f16 out=f32 fill=normal",             // a coarse rescale
    "q=2x1x16x16 kv=1x70x16 in=bf16 out=f32 window=3,3 kv_len=69,64 mask fill=ramp seed=3",
};

constexpr std::string_view kNeighbours[] = {
    "q=2x4x2x8 kv=2x3x8 fill=ramp",                           // entries and heads
    "q=2x1x1x4 kv=1x1x4 fill=ramp",                           // the smallest batch
    "q=1x2x1x4 kv=2x1x4 fill=ramp",                           // the fewest heads
    "q=1x12x3x8 kv=3x17x8 causal fill=ramp",                  // groups of four
    "q=2x2x5x8 kv=2x33x8 q_len=2,5 kv_len=33,1 fill=normal",  // padding next door
    "q=3x2x1x8 kv=1x65x8 splits=2 spare=1 kv_len=65,0,17 fill=normal",
    "q=2x2x3x5 kv=2x3x3 in=f16 out=f16 layout=bthd fill=normal",  // interleaved heads
};

constexpr std::string_view kCompany[] = {
    "q=1x1x1x4 kv=1x5x4 fill=normal",                    // the smallest entry
    "q=1x1x1x8 kv=1x65x8 splits=2 fill=normal",          // parts by the longest sequence
    "q=1x1x1x8 kv=1x33x8 splits=3 spare=2 fill=normal",  // and by the capacity
    "q=1x4x9x8 kv=2x33x8 causal fill=peaky",             // tiles by the queries
    "q=2x2x5x8 kv=2x33x8 q_len=5,2 kv_len=1,33 mask bias fill=normal seed=3",
    "q=2x1x1x4 kv=1x9x4 causal window=2,inf ring=3 kv_len=9,7 fill=normal",
    "q=1x4x1x8 kv=1x70x8 in=bf16 out=f32 cache=i8 scales=token page=16 order=2 splits=2",
    "q=1x2x17x16 kv=1x70x16 in=f16 out=f16 layout=bthd alibi fill=normal",
    "q=1x8x1x16 kv=1x200x16 in=f16 out=f32 splits=4 sinks fill=normal",
};

// Rows to which many warps, blocks and parts add, in the formats that kernels are chosen by. Narrow
// and nearly flat, so that every key has its part in the last bit.
constexpr std::string_view kOrders[] = {
    "q=1x1x1x8 kv=1x256x8 splits=4 fill=small",                   // parts
    "q=1x4x1x16 kv=1x200x16 in=f16 out=f32 splits=2 fill=small",  // warps of matrix units
    "q=1x8x2x16 kv=2x256x16 in=bf16 out=f32 splits=3 fill=small",
    "q=1x4x1x16 kv=1x200x16 in=bf16 out=f32 cache=e4m3 scales=token page=16 fill=small",
    "q=1x1x65x8 kv=1x129x8 causal fill=small",
    "q=1x2x65x16 kv=1x129x16 in=f16 out=f32 causal fill=small",
    "q=2x1x33x16 kv=1x200x16 in=bf16 out=f32 fill=one_signed",
    "q=1x2x3x5 kv=1x70x3 splits=5 sinks fill=one_signed",
    "q=1x1x1x4 kv=1x600x4 splits=7 fill=ill_conditioned",
};

constexpr std::string_view kNonfinite[] = {
    "q=1x1x1x1 kv=1x1x1",                                   // the smallest row
    "q=1x1x2x4 kv=1x3x4 fill=normal",                       // a row next to it
    "q=1x4x3x8 kv=2x33x8 causal fill=normal",               // heads of the group
    "q=1x1x17x8 kv=1x65x8 causal mask fill=normal seed=3",  // more than a tile
    "q=1x1x1x8 kv=1x65x8 splits=3 sinks fill=zero_query",   // parts without it
    "q=1x1x2x4 kv=1x5x4 softcap=2 bias fill=normal seed=1",
    "q=2x2x5x8 kv=2x33x8 in=bf16 out=bf16 q_len=5,2 kv_len=1,33 fill=normal",
    "q=1x4x5x16 kv=1x65x24 in=f16 out=f32 causal splits=2 fill=zero_query",  // matrix units
    "q=1x4x1x8 kv=1x70x8 in=bf16 out=f32 cache=i8 scales=token page=16 order=2",
    "q=1x2x1x8 kv=2x7x8 cache=e4m3 scales=head fill=zero_query",
    "q=1x1x3x8 kv=1x9x8 in=e5m2 out=bf16 fill=one_signed",
};

constexpr std::string_view kDecode[] = {
    "q=1x1x1x4 kv=1x1x4 splits=2 fill=ramp",                       // one split is empty
    "q=1x1x1x8 kv=1x65x8 splits=2 fill=ramp",                      // tiles per split rounded down
    "q=1x1x1x8 kv=1x17x8 splits=2 sinks fill=zero_query seed=1",   // sink once per split
    "q=2x1x1x4 kv=1x3x4 kv_len=0,3 splits=2 fill=ramp",            // all splits empty
    "q=2x1x1x4 kv=1x3x4 kv_len=0,3 empty_lse=plus_inf fill=ramp",  // and the LSE of nothing
    "q=1x2x3x8 kv=1x5x8 bias splits=2 strided=bias fill=normal",   // gaps in the bias
    "q=1x1x1x4 kv=1x2x4 spare=3 fill=ramp",                        // stale slots
    "q=1x1x1x4 kv=1x0x4 splits=2 spare=1 fill=normal",             // no key at all
    "q=1x4x1x8 kv=2x5x8 splits=3 spare=1 fill=ramp",               // LSE of which KV head
    "q=2x1x1x8 kv=1x128x8 kv_len=128,64 splits=2 fill=ramp",       // nothing left over
    "q=1x5x1x8 kv=1x7x8 splits=17 fill=ramp",                      // far more splits than keys
    "q=1x1x1x8 kv=1x65x8 splits=3 fill=falling_maxima",            // merge of far maxima
    "q=1x1x1x8 kv=1x33x8 splits=5 spare=2 fill=dominant_key",      // split borders
    "q=1x1x2x8 kv=1x33x8 causal splits=2 fill=ramp",               // two draft tokens
    "q=1x1x1x4 kv=1x33x4 causal window=2,inf splits=4 fill=ramp",  // splits outside the window
    "q=1x1x1x1 kv=1x3x1 splits=2 scale=1 fill=logits_very_low",    // weights of the merge
    "q=1x2x1x20 kv=1x17x3 splits=2 in=f16 out=f16 fill=normal",    // padded head_dim
    "q=3x2x1x8 kv=2x17x8 kv_len=17,1,16 splits=2 spare=1 lse=two fill=ramp",
    "q=2x1x1x4 kv=1x5x4 kv_len=5,2 page=2 order=1 fill=ramp",              // which page
    "q=1x2x1x8 kv=2x17x8 page=4 spare=3 splits=2 fill=ramp",               // the last page
    "q=2x1x1x4 kv=1x9x4 causal window=2,inf ring=3 kv_len=9,2 fill=ramp",  // where a ring begins
    "q=1x2x1x8 kv=2x7x8 cache=e4m3 scales=tensor fill=normal",
    "q=1x2x1x8 kv=2x7x8 in=f16 out=f16 cache=i8 scales=head page=3 order=2 fill=ramp",
    "q=2x2x2x8 kv=2x7x8 in=bf16 out=bf16 cache=e4m3 scales=token page=4 order=3 fill=normal",
    "q=1x1x1x4 kv=1x5x4 cache=bf16 fill=normal",        // wider queries than keys
    "q=1x1x1x4 kv=1x17x4 bias splits=2 fill=low_bias",  // a bias that is no -inf
    // Heads that matrix units take together: 16 rows by tiles of 64 keys, or 32 where wide.
    "q=1x4x1x8 kv=1x200x8 in=f16 out=f32 fill=rising_maxima",      // rescale
    "q=1x4x5x16 kv=1x65x24 in=bf16 out=f32 causal fill=ramp",      // two tiles of rows
    "q=1x5x1x136 kv=1x129x8 in=f16 out=f16 splits=2 fill=normal",  // wide
    "q=2x4x1x8 kv=1x70x8 in=bf16 out=f32 cache=i8 scales=token page=16 order=2 kv_len=70,64",
    "q=2x4x1x8 kv=2x70x8 in=f16 out=f16 cache=e4m3 scales=token page=16 order=2 splits=2 "
    "strided=q,k,v,o,lse,scales,table,far",
};

constexpr std::string_view kSequence[] = {
    "q=1x1x2x4 kv=1x2x4 causal fill=ramp",                       // one token after one
    "q=1x1x5x4 kv=1x5x4 causal spare=1 chunk=2 fill=ramp",       // chunks that do not divide
    "q=1x1x17x8 kv=1x17x8 causal chunk=16 fill=previous_token",  // across a tile edge
    "q=1x1x33x8 kv=1x33x8 causal chunk=16 splits=2 fill=ramp",   // and in two splits
    "q=1x2x4x4 kv=1x4x4 causal window=1,inf fill=ramp",          // window over the cache
    "q=2x2x4x4 kv=2x4x4 causal q_len=1,4 kv_len=1,4 chunk=3 fill=ramp",
    "q=1x2x4x4 kv=1x4x4 causal alibi bias chunk=3 spare=2 fill=normal",
    "q=1x1x65x8 kv=1x65x8 causal chunk=33 splits=3 spare=1 fill=rising_maxima",
    "q=2x1x5x4 kv=1x5x4 causal q_len=5,2 kv_len=5,2 chunk=2 page=2 order=1 fill=ramp",
    "q=1x2x17x8 kv=1x17x8 causal window=3,inf ring=20 chunk=5 fill=ramp",  // tokens overwritten
    "q=1x1x64x4 kv=1x64x4 causal spare=64 chunk=32 fill=ramp",      // tiles that end with the keys
    "q=1x1x300x2 kv=1x300x2 causal spare=9 chunk=290 fill=normal",  // steps of over 255 tokens
};

constexpr std::string_view kAppend[] = {
    "q=1x1x1x4 kv=1x0x4 spare=1",                                    // the first slot
    "q=1x1x1x4 kv=1x4x4",                                            // no slot left
    "q=1x1x1x4 kv=1x4x4 spare=2 chunk=3",                            // the last row does not fit
    "q=1x1x1x5 kv=1x3x3 spare=5 chunk=2",                            // d_k != d_v
    "q=2x2x1x4 kv=2x5x4 kv_len=1,5 spare=3 chunk=2",                 // own lengths
    "q=3x1x1x8 kv=1x17x8 kv_len=17,0,16 spare=17 chunk=17",          // across a tile edge
    "q=2x3x1x20 kv=3x4x20 in=f16 spare=4 chunk=3",                   // three heads, f16
    "q=2x1x1x4 kv=1x5x4 kv_len=5,2 spare=4 chunk=3 page=4 order=1",  // across two pages
    "q=1x1x1x4 kv=1x9x4 window=2,inf ring=3 chunk=2",                // around the ring
    "q=1x1x1x4 kv=1x1x4 window=2,inf ring=3 chunk=7",                // more than it holds
    "q=1x2x1x8 kv=2x3x4 spare=5 chunk=4 rope=halves",
    "q=1x2x1x8 kv=2x3x4 in=bf16 spare=5 chunk=4 rope=pairs page=3 order=2",
    "q=1x2x1x5 kv=2x3x8 spare=9 chunk=9 cache=e4m3 scales=tensor",
    "q=2x2x1x5 kv=2x3x8 in=f16 spare=9 chunk=9 cache=i8 scales=head",
    "q=2x2x1x8 kv=2x3x8 in=bf16 spare=9 chunk=9 cache=e4m3 scales=token rope=halves page=4 order=3",
    "q=1x1x1x8 kv=1x3x8 spare=9 chunk=9 cache=i8 scales=token page=16",
    "q=1x1x1x8 kv=1x3x8 spare=9 chunk=9 cache=bf16",  // halfway cases
    "q=1x1x1x8 kv=1x3x8 spare=9 chunk=9 cache=e5m2",  // beyond the largest
    "q=1x1x1x4 kv=1x3x4 spare=300 chunk=256",         // rows that 8 bits cannot number
    "q=2x1x1x2 kv=1x5x2 spare=700 chunk=600 page=64 order=1 kv_len=0,5",
    "q=2x2x1x8 kv=2x3x8 spare=9 chunk=9 strided=k,v,fresh,far",
};

constexpr std::string_view kCopies[] = {
    "q=1x1x1x4 kv=1x1x4 page=1",
    "q=1x2x1x5 kv=2x1x3 page=3 order=1",
    "q=1x3x1x8 kv=3x1x8 in=f16 layout=bthd page=4 order=2",
    "q=1x2x1x8 kv=2x1x16 cache=i8 scales=head page=16 order=3",
    "q=1x2x1x8 kv=2x1x8 in=bf16 cache=e4m3 scales=tensor page=16 order=4",
    "q=1x2x1x8 kv=2x1x16 page=16 order=3 strided=k,v,far",
};

constexpr std::string_view kPath[] = {
    "q=1x1x1x8 kv=1x5x8 cache=i8 scales=token page=2 order=1 chunk=3 fill=normal",
    "q=1x2x1x8 kv=1x17x8 cache=e4m3 scales=tensor rope=halves page=4 order=2 chunk=9 splits=2",
    "q=2x2x2x16 kv=2x33x16 in=f16 out=f16 causal cache=i8 scales=head rope=pairs page=16 order=3 "
    "chunk=16 splits=3 kv_len=33,7 fill=normal",
    "q=2x4x1x16 kv=2x20x8 in=bf16 out=bf16 cache=e4m3 scales=token rope=halves page=16 chunk=10 "
    "splits=2 layout=bthd fill=peaky",
    "q=1x1x4x8 kv=1x9x8 causal cache=i8 scales=tensor rope=pairs page=3 chunk=4 fill=one_signed",
};

constexpr std::string_view kProjection[] = {
    "q=1x1x1x1 kv=1x1x1",
    "q=1x1x17x5 kv=1x33x1 fill=integers",                 // tails on both sides
    "q=2x1x3x65 kv=1x17x1",                               // inner extent beyond a tile
    "q=1x1x17x200 kv=1x24x1 in=f16 out=f16 fill=normal",  // several inner tiles
    "q=1x1x2x64 kv=1x2x1 in=f16 out=f16 fill=ill_conditioned",
    "q=1x1x65x16 kv=1x16x1 in=bf16 out=bf16",
    "q=1x1x2x2 kv=1x2x1 in=f16 out=f32 fill=overflow_f16",  // sums beyond f16
    "q=2x1x3x8 kv=1x17x1 bias",
    "q=1x1x5x16 kv=1x8x1 in=bf16 out=bf16 bias",
};

constexpr std::string_view kTwoKeys[] = {
    "q=1x1x4x20 kv=1x2x2 fill=integers",
    "q=1x1x4x65 kv=1x2x8 fill=integers",
    "q=1x1x4x80 kv=1x2x8 fill=integers",
    "q=1x1x4x96 kv=1x2x8 fill=normal",
    "q=1x1x4x1 kv=1x2x1 fill=normal",
    "q=1x1x4x3 kv=1x2x2 fill=integers",
    "q=1x1x4x64 kv=1x2x8 scale=0.3 fill=normal",
};

constexpr std::string_view kSigns[] = {
    "q=1x1x1024x20 kv=1x1x1 fill=signs",
    "q=1x2x512x40 kv=1x2x2 fill=signs",
    "q=2x1x512x5 kv=1x3x4 fill=signs",
};

constexpr std::string_view kScores[] = {
    "q=1x1x64x4 kv=1x64x4 fill=normal",                  // one tile of each
    "q=1x1x129x4 kv=1x129x2 causal fill=normal",         // half of them masked
    "q=1x2x33x8 kv=1x160x8 in=f16 out=f16 fill=normal",  // a group, 16 bits
    "q=2x1x48x4 kv=1x96x4 kv_len=96,64 layout=bthd fill=normal",
    "q=1x1x64x4 kv=1x65x2 bias mask fill=normal seed=7",  // what is of the scores' size
};

// Whole tiles of 128 keys: see properties/costs.hpp.
constexpr std::string_view kGrowth[] = {
    "q=1x1x2x4 kv=1x128x4 fill=normal",
    "q=1x1x2x64 kv=1x128x1 fill=normal",  // where scores are most of the work
    "q=1x1x128x4 kv=1x128x2 causal fill=normal",
    "q=1x2x3x8 kv=1x256x8 in=bf16 out=bf16 fill=normal",
    "q=1x1x1x4 kv=1x128x4 softcap=2 alibi sinks fill=normal",
};

constexpr std::string_view kCachedWork[] = {
    "q=1x1x1x4 kv=1x128x4 fill=normal",
    "q=1x2x1x8 kv=1x256x4 splits=2 fill=normal",
    "q=2x2x1x4 kv=2x128x8 in=f16 out=f16 fill=normal",
};

// Sizes that kernels treat apart: with instances, loops or index types of their own. One extent is
// large, sometimes two; the rest is small.
constexpr std::string_view kAttentionSizes[] = {
    "q=9x8x1x4 kv=8x3x4 fill=normal",                               // many entries, eight KV heads
    "q=1x32x2x192 kv=1x5x128 in=bf16 out=bf16 causal fill=normal",  // a wide group, two widths
};

constexpr std::string_view kPrefillSizes[] = {
    "q=17x8x1x4 kv=8x3x4 fill=normal",                            // batch and KV heads
    "q=1x32x1x4 kv=1x2049x4 fill=rising_maxima",                  // a wide group over many keys
    "q=1x1x1x2 kv=1x33000x2 fill=previous_token",                 // keys beyond 15 bits
    "q=1x16x640x2 kv=1x2x1 fill=normal",                          // 10,240 rows
    "q=1x1x2x192 kv=1x3x128 fill=normal",                         // two widths
    "q=33x4x1x8 kv=4x5x8 in=f16 out=f16 fill=normal",             // batch and KV heads
    "q=1x64x1x8 kv=1x1030x8 in=bf16 out=f32 fill=rising_maxima",  // a wide group over many keys
    "q=1x1x1x8 kv=1x33000x8 in=f16 out=f32 fill=previous_token",  // keys beyond 15 bits
    "q=1x2x1030x8 kv=1x3x8 in=bf16 out=f32 fill=normal",          // many queries
    "q=1x1x3x192 kv=1x33x192 in=bf16 out=bf16 fill=normal",       // wide
    "q=1x8x2x256 kv=8x3x256 in=f16 out=f32 fill=normal",     // the widest of most, eight KV heads
    "q=1x16x1x576 kv=1x5x512 in=bf16 out=bf16 fill=normal",  // latent attention
    "q=1x1x2x4 kv=1x3x4 causal spare=2 fill=ramp",           // stale slots
    "q=64x16x1x8 kv=16x2x8 in=bf16 out=bf16 fill=normal",    // more entries and KV heads
    "q=2x128x1x5 kv=1x5x3 fill=normal",                      // the widest group
    "q=1x1x2049x4 kv=1x3x4 fill=normal",                     // many queries
    "q=1x16x640x8 kv=8x2x8 in=f16 out=f32 fill=normal",      // 10,240 rows
};

constexpr std::string_view kDecodeSizes[] = {
    "q=17x8x1x4 kv=8x3x4 fill=normal",                      // batch and KV heads
    "q=1x32x1x4 kv=1x2049x4 splits=3 fill=rising_maxima",   // a wide group over many keys
    "q=1x1x1x2 kv=1x33000x2 splits=5 fill=previous_token",  // keys beyond 15 bits
    "q=1x2x1x192 kv=1x3x128 fill=normal",                   // two widths
    "q=1x2x1x4 kv=1x300x4 page=256 order=1 splits=2 fill=rising_maxima",  // large pages
    "q=1x2x1x4 kv=2x600x4 page=512 order=1 fill=previous_token",          // the largest
    "q=33x16x1x8 kv=4x5x8 in=f16 out=f16 fill=normal",                    // batch and KV heads
    "q=1x64x1x8 kv=1x1030x8 in=bf16 out=f32 splits=2 fill=rising_maxima",
    "q=1x4x1x8 kv=1x33000x8 in=f16 out=f32 splits=3 fill=previous_token",  // keys beyond 15 bits
    "q=1x32x1x8 kv=8x130x8 in=bf16 out=f32 cache=e4m3 scales=head page=128 order=1",
    "q=1x128x1x192 kv=1x3x192 in=bf16 out=bf16 fill=normal",  // the widest group, wide
    "q=1x4x1x256 kv=1x33x256 in=f16 out=f32 fill=normal",     // the widest of most
    "q=1x16x1x576 kv=1x5x512 in=bf16 out=bf16 fill=normal",   // latent attention
    "q=64x16x1x4 kv=16x2x4 fill=normal",                      // more entries and KV heads
    "q=2x128x1x5 kv=1x5x3 fill=normal",                       // the widest group
    "q=16x128x5x8 kv=8x2x8 in=f16 out=f32 fill=normal",       // 10,240 rows
    "q=1x4x1x8 kv=1x40000x8 in=bf16 out=f32 cache=i8 scales=head page=512 order=1 "
    "fill=previous_token",
};

constexpr std::string_view kAppendSizes[] = {
    "q=17x8x1x4 kv=8x3x4 spare=4 chunk=3",     // batch and KV heads
    "q=1x1x1x2 kv=1x32767x2 spare=4 chunk=3",  // tokens beyond 15 bits
    "q=2x2x1x4 kv=2x300x4 page=256 order=1 spare=260 chunk=230 kv_len=300,20",  // large pages
    "q=1x8x1x2 kv=8x1x2 spare=1300 chunk=1290",                                 // 10,320 rows
    "q=1x1x1x192 kv=1x2x128 in=bf16 spare=3 chunk=3",                           // two widths
    "q=33x1x1x8 kv=1x2x8 in=f16 spare=4 chunk=3 page=128",                      // many entries
    "q=1x1x1x576 kv=1x2x512 in=bf16 spare=3 chunk=2",                           // latent attention
    "q=1x8x1x8 kv=8x130x8 in=bf16 spare=9 chunk=5 cache=e4m3 scales=token page=128 order=1",
    "q=1x4x1x256 kv=4x2x256 in=f16 spare=3 chunk=3 cache=i8 scales=head rope=halves",
    "q=64x16x1x2 kv=16x1x2 spare=3 chunk=3",  // more entries and KV heads
    "q=1x1x1x8 kv=1x39999x2 in=f16 spare=5 chunk=5 cache=e4m3 scales=token page=16 order=1",
};

constexpr std::string_view kCopiesSizes[] = {
    "q=1x8x1x4 kv=8x1x4 page=16 order=1",                           // eight KV heads
    "q=1x1x1x4 kv=1x1x8 page=256 order=1",                          // large pages
    "q=1x1x1x8 kv=1x1x8 in=bf16 page=512 order=2",                  // the largest
    "q=1x4x1x8 kv=4x1x8 cache=e4m3 scales=token page=128 order=1",  // large pages
    "q=1x1x1x192 kv=1x1x128 in=f16 page=4 order=1",                 // two widths
    "q=1x1x1x576 kv=1x1x512 in=bf16 page=2 order=3",                // latent attention
    "q=1x16x1x4 kv=16x1x4 page=64 order=2",                         // sixteen KV heads
};

constexpr std::string_view kProjectionSizes[] = {
    "q=33x1x2x8 kv=1x5x1",               // many entries
    "q=1x1x1030x5 kv=1x3x1",             // many rows
    "q=1x1x3x576 kv=1x9x1 fill=normal",  // a long sum
    "q=1x1x3x192 kv=1x17x1 fill=normal",
    "q=1x1x2x4 kv=1x2049x1",                              // many columns
    "q=17x1x2x8 kv=1x16x1 in=f16 out=f16",                // many entries
    "q=1x1x1030x8 kv=1x8x1 in=bf16 out=f32",              // many rows
    "q=1x1x3x1032 kv=1x16x1 in=f16 out=f32 fill=normal",  // a long sum
    "q=1x1x2x8 kv=1x2056x1 in=bf16 out=bf16",             // many columns
};

constexpr std::string_view kNeighboursSizes[] = {
    "q=9x8x1x4 kv=8x3x4 fill=normal",  // many entries and heads
    "q=2x32x1x8 kv=1x130x8 in=bf16 out=bf16 page=128 order=1 fill=normal",  // a wide group
};

constexpr std::string_view kCompanySizes[] = {
    "q=9x8x1x4 kv=8x3x4 fill=normal",                               // many entries and heads
    "q=2x64x1x8 kv=1x1030x8 in=bf16 out=f32 splits=2 fill=normal",  // a wide group over many keys
};

constexpr std::string_view kSequenceSizes[] = {
    "q=9x8x5x4 kv=8x5x4 causal chunk=2 spare=2 fill=ramp",  // many entries and heads
    "q=1x32x5x192 kv=1x5x128 causal in=bf16 out=bf16 chunk=2 spare=2 fill=normal",  // a wide group
};

struct Table {
  std::string_view property;
  std::span<const std::string_view> lines, sizes;
};

constexpr Table kTables[] = {
    {"oracle_agreement", kAttention, kPrefillSizes},
    {"decode_agreement", kDecode, kDecodeSizes},
    {"batch_independence", kNeighbours, kNeighboursSizes},
    {"batch_invariance", kCompany, kCompanySizes},
    {"rerun", kOrders, {}},
    {"visible_nonfinite", kNonfinite, {}},
    {"cached_equals_recomputed", kSequence, kSequenceSizes},
    {"append_writes_its_slots", kAppend, kAppendSizes},
    {"copied_pages", kCopies, kCopiesSizes},
    {"quantised_path", kPath, {}},
    {"projection_agreement", kProjection, kProjectionSizes},
    {"effective_scale", kTwoKeys, {}},
    {"variance_scaling", kSigns, {}},
    {"no_score_matrix", kScores, {}},
    {"work_grows_with_scores", kGrowth, {}},
    {"cached_work", kCachedWork, {}},
};
constexpr Table kOthers = {"", kAttention, kAttentionSizes};

using Lines = std::vector<std::string_view>;

Lines lines_of(const Table& table) {
  Lines lines(table.lines.begin(), table.lines.end());
  // Prefill has no parts: to it a line with some is one that it has already.
  if (table.property == "oracle_agreement") {
    std::erase_if(lines, [](std::string_view line) { return line.find(" splits=") < line.size(); });
  }
  return by_turns(lines, table.sizes);
}

}  // namespace

std::span<const std::string_view> hard_cases(std::string_view property) {
  static const auto all = [] {
    std::map<std::string_view, Lines> made{{kOthers.property, lines_of(kOthers)}};
    for (const Table& table : kTables) made.emplace(table.property, lines_of(table));
    return made;
  }();
  const auto found = all.find(property);
  return found == all.end() ? all.at(kOthers.property) : found->second;
}

}  // namespace attest
