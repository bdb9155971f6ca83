package daemon

import (
	"crypto/ed25519"

	"reprise/cmd/internal/keys"
	"reprise/format"
)

// readSigningKey reads the daemon's own key, if it has one: each session is
// signed with it at its end.
func (d *Daemon) readSigningKey() error {
	if d.cfg.SigningKey == "" {
		return nil
	}
	key, err := keys.ReadPrivate(d.cfg.SigningKey)
	if err != nil {
		return badFile("signing_key", err)
	}
	d.sign = func(s format.Statement) (format.Signature, error) { return s.Sign(key), nil }
	d.log.Info("sessions are signed", "key", format.PublicKey(key.Public().(ed25519.PublicKey)).ID())
	return nil
}
