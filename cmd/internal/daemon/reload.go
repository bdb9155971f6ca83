package daemon

import (
	"slices"
	"strings"
)

// Source is where the configuration comes from, for a reload.
type Source struct {
	// File is the configuration file; empty for none.
	File string
	// Load gives the configuration anew.
	Load func() (Config, error)
}

// ReloadFrom says where a reload finds the configuration. With auto_reload
// the files are watched from now on; it is called before Start, which reads
// them.
func (d *Daemon) ReloadFrom(s Source) {
	d.source = s
	if d.cfg.AutoReload {
		d.watch = newWatcher(lookInterval)
		d.watch.turnTo(d.files(&d.cfg))
	}
}

// files are the files that a reload reads for a configuration.
func (d *Daemon) files(cfg *Config) []string {
	files := []string{d.source.File, cfg.TLSCert, cfg.TLSKey, cfg.Tokens, cfg.ClientCA}
	return slices.DeleteFunc(files, func(path string) bool { return path == "" })
}

// changed rings when the files may have changed; nil where nothing watches.
func (d *Daemon) changed() <-chan struct{} {
	if d.watch == nil {
		return nil
	}
	return d.watch.changed
}

// reloadIfChanged is a reload where any file differs from what was read.
func (d *Daemon) reloadIfChanged() {
	if d.watch.differ() {
		d.reload()
	}
}

// reload takes what can be taken into use without a restart: the certificate,
// who may record, and the live keys of the configuration. Where any of it is
// bad, nothing is, and that stays visible until the next good one.
func (d *Daemon) reload() {
	restart, err := d.readAgain()
	if err != nil {
		text := err.Error()
		d.refusedReload.Store(&text)
		d.log.Error("reload refused, all stays as it was", "error", err)
		return
	}
	d.refusedReload.Store(nil)
	d.setLevel()
	if err := d.writeFingerprint(); err != nil {
		d.log.Error("the certificate is in use, but clients do not find its fingerprint", "error", err)
	}
	if len(restart) > 0 {
		d.log.Warn("reloaded, but some changed keys need a restart", "keys", strings.Join(restart, ", "), "fingerprint", d.pair.Fingerprint())
		return
	}
	d.log.Info("reloaded", "fingerprint", d.pair.Fingerprint())
}

// readAgain reads everything, and only then takes it into use.
func (d *Daemon) readAgain() (restart []string, err error) {
	if d.watch != nil {
		d.watch.refresh()
	}
	next, err := d.source.Load()
	if err != nil {
		return nil, err
	}
	// What a restart would change stays, and has to go together with the rest.
	merged := d.cfg
	restart = merged.take(&next)
	if err := merged.Validate(); err != nil {
		return nil, err
	}
	if d.watch != nil {
		d.watch.turnTo(d.files(&merged))
	}
	guard, err := readGuard(&merged)
	if err != nil {
		return nil, err
	}
	if err := d.pair.Reload(); err != nil {
		return nil, badFile("tls_cert", err)
	}
	if err := d.recorder.SetLimits(merged.limits()); err != nil {
		return nil, err
	}
	d.cfg = merged
	d.retune()
	d.guard.Store(guard)
	d.gate.most.Store(int64(merged.MaxConnections))
	return restart, nil
}
