/* The rules of the game marbles (player/games/marbles), without any library. */
#include <stdint.h>

enum { MARBLES = 16, BOARD = 65536, CELL = 12, MOST_PUSH = 64 };

static uint64_t drawn;
static struct { int64_t x, y, vx, vy; } marble[MARBLES];

static uint64_t draw(void) {
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return drawn >> 33;
}

static void start(uint64_t seed) {
    drawn = seed;
    for (int i = 0; i < MARBLES; i++) {
        marble[i].x = draw() % BOARD;
        marble[i].y = draw() % BOARD;
        marble[i].vx = marble[i].vy = 0;
    }
}

/* Carries out a command; 0 where it is ignored. */
static int command(int code, const int64_t *p) {
    if (p[1] < 0 || p[1] >= MARBLES)
        return 0;
    if (code == 2) {
        marble[p[1]].vx = marble[p[1]].vy = 0;
        return 1;
    }
    if (p[2] < -MOST_PUSH || p[2] > MOST_PUSH || p[3] < -MOST_PUSH || p[3] > MOST_PUSH)
        return 0;
    marble[p[1]].vx += p[2];
    marble[p[1]].vy += p[3];
    return 1;
}

static void exchange(int64_t *a, int64_t *b) {
    int64_t kept = *a;
    *a = *b;
    *b = kept;
}

static void end_tick(uint64_t tick) {
    for (int i = 0; i < MARBLES; i++) {
        marble[i].x = (marble[i].x + marble[i].vx) & (BOARD - 1);
        marble[i].y = (marble[i].y + marble[i].vy) & (BOARD - 1);
        if (tick % 16 == 0) {
            marble[i].vx -= marble[i].vx >> 3;
            marble[i].vy -= marble[i].vy >> 3;
        }
    }
    for (int i = 0; i < MARBLES; i++)
        for (int j = i + 1; j < MARBLES; j++)
            if (marble[i].x >> CELL == marble[j].x >> CELL && marble[i].y >> CELL == marble[j].y >> CELL) {
                exchange(&marble[i].vx, &marble[j].vx);
                exchange(&marble[i].vy, &marble[j].vy);
            }
    uint64_t value = draw();
    marble[value % MARBLES].vx += (int64_t)((value >> 8) % 15) - 7;
}

static uint64_t fnv(uint64_t sum, uint64_t v) {
    for (int shift = 56; shift >= 0; shift -= 8)
        sum = (sum ^ (v >> shift & 0xff)) * 1099511628211u;
    return sum;
}

static uint64_t hash(void) {
    uint64_t sum = fnv(14695981039346656037u, drawn);
    for (int i = 0; i < MARBLES; i++)
        sum = fnv(fnv(fnv(fnv(sum, marble[i].x), marble[i].y), marble[i].vx), marble[i].vy);
    return sum;
}
