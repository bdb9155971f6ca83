package daemon

import (
	"net"
	"os"
	"strconv"
	"time"
)

// notifier speaks to the service manager that started the daemon, by the
// socket that it names in the environment. Without one it does nothing.
type notifier struct{ conn net.Conn }

func newNotifier(socket string) *notifier {
	if socket == "" {
		return &notifier{}
	}
	conn, err := net.Dial("unixgram", socket)
	if err != nil {
		return &notifier{}
	}
	return &notifier{conn}
}

// send passes a state on. A manager that does not listen any more changes
// nothing for the sessions.
func (n *notifier) send(state string) {
	if n.conn != nil {
		_, _ = n.conn.Write([]byte(state))
	}
}

func (n *notifier) close() {
	if n.conn != nil {
		n.conn.Close()
	}
}

// beat ticks at half the watchdog's time; nil where there is no watchdog, or
// it is another process's.
func (n *notifier) beat(micros, pid string) <-chan time.Time {
	us, err := strconv.ParseInt(micros, 10, 64)
	if n.conn == nil || err != nil || us <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return nil
	}
	return time.Tick(time.Duration(us) * time.Microsecond / 2)
}
