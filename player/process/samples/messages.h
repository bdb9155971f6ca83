/* marbles' side of the protocol (player/process/PROTOCOL.md), without any library:
 * handle() answers a message. socket.c carries them, and player/wasm/samples/module.c. */
#include "marbles.h"

enum { HELLO = 1, READY = 2, REFUSED = 3, DONE = 4, FAILED = 5, BROKEN = 6, FLUSHED = 7, FIELDS = 9,
       WELCOME = 101, RESET = 102, TICK = 103, FLUSH = 104, DUMP = 107, BYE = 108 };

static int playing; /* set between a reset and a failed step */

/* The answer: put() and its kin write at its end. */
static uint8_t answer[16384];
static uint32_t answered;

static void put(uint64_t v, int bytes) {
    for (; bytes > 0; bytes--, v >>= 8)
        answer[answered++] = (uint8_t)v;
}

static void put_text(const char *text) {
    uint32_t n = 0;
    while (text[n])
        n++;
    put(n, 4);
    for (uint32_t i = 0; i < n; i++)
        put((uint8_t)text[i], 1);
}

/* Writes a decimal number; a sign only where it is not unsigned. */
static void put_digits(int64_t v, int is_unsigned) {
    uint64_t u = (uint64_t)v, n = 0;
    uint8_t digits[20];
    if (v < 0 && !is_unsigned)
        u = -u, put('-', 1);
    do
        digits[n++] = (uint8_t)('0' + u % 10);
    while (u /= 10);
    while (n)
        put(digits[--n], 1);
}

/* Writes a field of the dump; without an index where at is below 0. */
static void put_field(const char *name, int at, const char *rest, int64_t v) {
    uint32_t length = answered;
    put_text(name);
    if (at >= 0)
        put_digits(at, 1);
    for (; *rest; rest++)
        put((uint8_t)*rest, 1);
    answer[length] = (uint8_t)(answered - length - 4);
    length = answered;
    put(0, 4), put_digits(v, at < 0);
    answer[length] = (uint8_t)(answered - length - 4);
}

static void begin(int type) { answered = 0, put(0, 4), put(type, 1); }

static void finish(void) {
    uint32_t length = answered - 4;
    for (int i = 0; i < 4; i++)
        answer[i] = (uint8_t)(length >> 8 * i);
}

static uint64_t get(const uint8_t **at, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)*(*at)++ << 8 * i;
    return v;
}

static void hello(const char *token) {
    begin(HELLO);
    put(1, 2), put(1, 2); /* versions 1 to 1 */
    put_text(token), put_text("marbles in C"), put(1, 4), put_text("marbles"), put_text("marbles-1");
    put(4, 4), put(8, 4); /* can dump; hashes of 8 bytes */
    finish();
}

static void tick(const uint8_t *at) {
    uint64_t number = get(&at, 8), wanted = get(&at, 1), steps = get(&at, 4), ignored = 0;
    for (uint32_t step = 0; step < steps; step++) {
        int64_t p[4] = {0};
        int code = (int)get(&at, 2);
        uint32_t n = (uint32_t)get(&at, 4), good = code == 1 ? n == 4 : code == 2 && n == 2;
        for (uint32_t i = 0; good && i < n; i++) {
            good = get(&at, 1) == 2;
            p[i] = (int64_t)get(&at, 8);
        }
        if (!good) {
            playing = 0;
            begin(FAILED), put(number, 8), put(number, 8), put(step, 4), put(code, 2), put(0, 1), put(ignored, 4);
            put_text("no such command"), finish();
            return;
        }
        ignored += !command(code, p);
    }
    end_tick(number);
    begin(DONE), put(number, 8), put(ignored, 4), put(wanted ? 8 : 0, 4);
    uint64_t sum = hash();
    for (int shift = 56; wanted && shift >= 0; shift -= 8)
        put(sum >> shift & 0xff, 1);
    finish();
}

static void dump(void) {
    begin(FIELDS), put(1 + 4 * MARBLES, 4), put_field("random", -1, "", (int64_t)drawn);
    for (int i = 0; i < MARBLES; i++) {
        put_field("marbles[", i, "].x", marble[i].x), put_field("marbles[", i, "].y", marble[i].y);
        put_field("marbles[", i, "].vx", marble[i].vx), put_field("marbles[", i, "].vy", marble[i].vy);
    }
    finish();
}

static void reset(const uint8_t *at) {
    at += 4 + 8; /* there is one game; the next tick */
    playing = !get(&at, 1);
    at += get(&at, 4) + 8; /* no keyframe; the first tick */
    if (playing)
        start(get(&at, 8)), begin(READY);
    else
        begin(REFUSED), put(0, 1), put_text("marbles starts from the beginning alone");
    finish();
}

/* Answers one message, whose head is 5 bytes; answered is 0 where none is due. */
static void handle(const uint8_t *message) {
    answered = 0;
    switch (message[4]) {
    case WELCOME: hello(""); break;
    case RESET: reset(message + 5); break;
    case TICK: if (playing) tick(message + 5); break;
    case FLUSH: begin(FLUSHED), finish(); break;
    case DUMP: dump(); break;
    default: begin(BROKEN), put(0, 8), put_text("unknown message"), finish();
    }
}
