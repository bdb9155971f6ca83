package transport

import "net"

// Lister answers what sessions there are. Its method may be called by many
// goroutines at once.
type Lister interface {
	// List gives sessions by id, those whose id is above req.After and begins
	// with req.Prefix, at most req.Most, and whether there are more behind
	// them. It leaves out what the token may not see. A *Refusal reaches the
	// client as it is; of any other error it learns only CodeUnavailable.
	List(req ListRequest) (sessions []Listed, more bool, err error)
}

// ListRequest is a client's wish to know what sessions there are.
type ListRequest struct {
	// After is the id that the listing goes on behind; it need not exist.
	After string
	// Prefix is how the ids begin.
	Prefix string
	// Most is at most MaxListed.
	Most int
	// Token is the access token of the connection.
	Token  []byte
	Remote net.Addr
}

// takeList has a list frame answered. One at a time: a client that asks and
// does not wait is not to be served.
func (c *serverConn) takeList(body []byte) error {
	if c.version < versionList {
		return &FrameError{Frame: frameName(typeList), What: "a client must not send it in this version"}
	}
	l, err := parseList(body)
	if err != nil {
		return err
	}
	c.mu.Lock()
	busy := c.listing
	c.listing = true
	c.mu.Unlock()
	if busy {
		return &FrameError{Frame: frameName(typeList), What: "the last one is not answered yet"}
	}
	c.opens.Go(func() { c.answerList(&l) })
	return nil
}

func (c *serverConn) answerList(l *list) {
	answer := listing{number: l.number}
	sessions, more, err := c.lookUp(l)
	if err != nil {
		r := refusalFor(err)
		c.server.cfg.Log.Info("listing refused", "remote", c.c.RemoteAddr().String(), "error", err)
		answer.code, answer.text = r.Code, r.Text
	} else {
		answer.sessions, answer.more = sessions, more
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listing = false
	c.enqueueLocked(answer.append(nil))
}

func (c *serverConn) lookUp(l *list) (sessions []Listed, more bool, err error) {
	lister := c.server.cfg.Lister
	if lister == nil {
		return nil, false, refuse(CodeUnauthorised, "this daemon lists no sessions")
	}
	sessions, more, err = lister.List(ListRequest{After: l.after, Prefix: l.prefix, Most: int(l.most), Token: c.token, Remote: c.c.RemoteAddr()})
	if n := int(l.most); len(sessions) > n {
		sessions, more = sessions[:n], true
	}
	return sessions, more, err
}
