/* marbles as a simulation in a process of its own:
 *     cc -O2 -o marbles socket.c
 *     reprise verify --sim exec:./marbles match.rply
 */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "messages.h"

/* Connects to unix:PATH or tcp:ADDRESS:PORT. */
static int dial(const char *address) {
    int s = -1;
    if (strncmp(address, "unix:", 5) == 0) {
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        strncpy(to.sun_path, address + 5, sizeof to.sun_path - 1);
        s = socket(AF_UNIX, SOCK_STREAM, 0);
        return connect(s, (struct sockaddr *)&to, sizeof to) == 0 ? s : -1;
    }
    if (strncmp(address, "tcp:", 4) == 0) {
        char host[256];
        strncpy(host, address + 4, sizeof host - 1), host[sizeof host - 1] = 0;
        char *port = strrchr(host, ':');
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *to;
        if (port == NULL || (*port++ = 0, getaddrinfo(host, port, &hints, &to)) != 0)
            return -1;
        s = socket(to->ai_family, to->ai_socktype, 0);
        return connect(s, to->ai_addr, to->ai_addrlen) == 0 ? s : -1;
    }
    return -1;
}

int main(void) {
    const char *address = getenv("REPRISE_SIM_SOCKET"), *token = getenv("REPRISE_SIM_TOKEN");
    if (address == NULL || token == NULL)
        return fputs("this is a simulation: reprise verify --sim exec:…\n", stderr), 2;
    int s = dial(address);
    FILE *in = s < 0 ? NULL : fdopen(s, "rb"), *out = s < 0 ? NULL : fdopen(dup(s), "wb");
    if (in == NULL || out == NULL)
        return perror(address), 1;
    uint8_t *message = NULL;
    hello(token);
    fwrite(answer, 1, answered, out), fflush(out);
    for (uint8_t head[5]; fread(head, 1, 5, in) == 5;) {
        uint32_t length = head[0] | head[1] << 8 | head[2] << 16 | (uint32_t)head[3] << 24;
        message = realloc(message, (size_t)length + 4);
        memcpy(message, head, 5);
        if (fread(message + 5, 1, length - 1, in) != length - 1 || head[4] == BYE)
            break;
        if (head[4] == WELCOME)
            continue; /* the hello was sent before */
        handle(message);
        fwrite(answer, 1, answered, out);
        if (head[4] != TICK)
            fflush(out); /* answers to ticks wait for the flush behind them */
    }
    return 0;
}
