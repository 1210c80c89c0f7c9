// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/notify"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/internal/sources/manifest"
	"github.com/hookgate/hookgate/registry"
)

const (
	// debounce is how long a directory must be quiet before it is read again, and maxDebounce how long that may take.
	// Programs write files in several steps.
	debounce    = 50 * time.Millisecond
	maxDebounce = time.Second
	// reread is how often the directory is read without an event: file systems such as NFS send none, and a link's
	// target is not watched.
	reread = 10 * time.Second
	// firstPatience is how long first attempts may keep the gateway from being ready. An extension that is slower keeps
	// only calls that need its handlers waiting.
	firstPatience = time.Second
	// endPatience is how long the reading of changes waits for attempts that it has cancelled, so that changes of many
	// files are applied together.
	endPatience = 100 * time.Millisecond
)

// Observer records events as metrics. It must be safe for concurrent use.
type Observer interface {
	discovery.Observer
	// ManifestErrors records how many errors the manifests of the directory have now.
	ManifestErrors(n int)
}

// Config configures a Source.
type Config struct {
	// Dir is the directory of the manifests. Messages name files with this prefix.
	Dir        string
	Catalog    *catalog.Catalog
	Registry   discovery.Registry
	Discoverer discovery.Discoverer
	Logger     *slog.Logger

	// Resync is how often an extension that answers is discovered again. Zero means discovery.DefaultResync.
	Resync time.Duration
	// Backoff is for extensions that do not answer. Zero means discovery.DefaultBackoff.
	Backoff discovery.Backoff
	// Observer may be nil.
	Observer Observer
	// References, which may be nil, is given the CustomResourceDefinitions in the directory.
	References *convert.References
	// Losses, which may be nil, forgets an ExtensionConfig that is removed.
	Losses *convert.Losses
	// StateDir is the directory that keeps which handlers discoveries have found, and which Clusters have moved in
	// ExtensionRollouts, for the next start. Empty means none: ExtensionRollouts are refused then.
	StateDir string
	// Compared, which may be nil, counts comparisons of ExtensionRollouts by their results.
	Compared func(rollout, result string)
}

// Source is a source of ExtensionConfigs: a directory of manifests, as files or as a ConfigMap that is mounted.
//
// It reads the files *.yaml, *.yml and *.json, but neither subdirectories nor hidden files, with any number of
// documents: ExtensionConfig of runtime.cluster.x-k8s.io in v1beta2 and v1alpha1, ExtensionPolicy, HandlerChain,
// HookRule and ExtensionRollout of hookgate.dev, v1 Namespace, for the labels that namespaceSelector matches, and
// CustomResourceDefinition, whose name and contract labels resolve unversioned references. It follows changes, and
// never writes.
type Source struct {
	dir      string
	registry discovery.Registry
	logger   *slog.Logger
	observer Observer // may be nil
	decoder  *manifest.Decoder
	workers  *workers
	tracking *discovery.TrackingRegistry // in front of registry, for the workers
	// references may be nil.
	references *convert.References
	state      *state      // may be nil
	valid      *validState // nil without a directory for it
	records    *records
	engine     *rollout.Engine

	files                         files.Reader
	again                         *notify.Signal // of Reload
	debounce, maxDebounce, reread time.Duration
	patience                      time.Duration // how long the first attempts may delay readiness

	// The rest belongs to Run.
	read         []manifest.File // what was read last
	manifests    []manifest.File // those of inventory
	inventory    *manifest.Inventory
	problems     []manifest.Problem // of the manifests
	reported     map[string]bool    // the problems that were logged and still are there
	sets         allkinds.Sets
	present      map[string]atStart // the ExtensionConfigs that were there at the start; nil before these are known
	unreadable   []string           // the files that cannot be read, and of which nothing is kept
	awaitedFiles []string           // the files that cannot be read now, and of which nothing is kept
	mistaken     []string           // the keys of ExtensionConfigs that calls wait for, because they have mistakes
	settled      bool               // the first attempts are over
	confirmed    bool               // by Reload: the directory is as it should be

	warning    atomic.Pointer[status.Notice]
	namespaces atomic.Pointer[map[string]manifest.Object]
}

// New returns a Source. It does not read it yet.
func New(c Config) (*Source, error) {
	if c.Dir == "" {
		return nil, errors.New("directory source: Dir is required")
	}
	if c.Resync == 0 {
		c.Resync = discovery.DefaultResync
	}
	if c.Resync < 0 {
		return nil, errors.New("directory source: Resync must be more than 0")
	}
	if c.Backoff == (discovery.Backoff{}) {
		c.Backoff = discovery.DefaultBackoff()
	}
	if err := c.Backoff.Check(); err != nil {
		return nil, fmt.Errorf("directory source: %w", err)
	}
	if c.Catalog == nil || c.Registry == nil {
		return nil, errors.New("directory source: Catalog, Registry, Discoverer and Logger are required")
	}
	records := newRecords(c.StateDir, c.Logger)
	engine := rollout.New(rollout.Config{Store: records, Logger: c.Logger, Compared: c.Compared})
	decoder, err := manifest.NewDecoder(c.Catalog, func(of *allkinds.Config) { of.Rollout = engine.Compile })
	if err != nil {
		return nil, fmt.Errorf("directory source: %w", err)
	}
	var observer discovery.Observer
	if c.Observer != nil {
		observer = c.Observer
	}
	tracking := discovery.NewTrackingRegistry(c.Registry)
	r, err := discovery.NewReconciler(discovery.ReconcilerConfig{
		Registry: tracking, Discoverer: c.Discoverer, Logger: c.Logger, Observer: observer, Losses: c.Losses,
	})
	if err != nil {
		return nil, fmt.Errorf("directory source: %w", err)
	}
	var kept *state
	if c.StateDir != "" {
		if kept, err = openState(c.StateDir, c.Catalog, c.Logger); err != nil {
			return nil, fmt.Errorf("directory source: %w", err)
		}
	}
	d := &Source{
		state: kept,
		dir:   c.Dir, registry: c.Registry, logger: c.Logger, observer: c.Observer, decoder: decoder, tracking: tracking,
		references: c.References, records: records, engine: engine,
		workers: &workers{
			reconciler: r, backoff: c.Backoff, resync: c.Resync, patience: endPatience, current: map[string]*worker{},
			state: kept,
		},
		debounce: debounce, maxDebounce: maxDebounce, reread: reread, patience: firstPatience,
		again:     notify.NewSignal(),
		inventory: &manifest.Inventory{}, reported: map[string]bool{},
	}
	d.sets = allkinds.NewSets(allkinds.SetConfig{
		Registry: tracking, Hooks: c.Catalog, Types: decoder.Types(), Engine: d.engine, Logger: c.Logger,
		Exists: func(name string) bool { _, ok := d.inventory.Of(extensionconfig.Kind)[name]; return ok },
	})
	if d.valid = newValidState(c.StateDir, c.Dir, c.Logger); d.valid != nil {
		decoder.KeepContent()
	}
	d.namespaces.Store(&map[string]manifest.Object{})
	return d, nil
}

// NamespaceLabels returns the labels in the manifest of a namespace, and always kubernetes.io/metadata.name. It reports
// whether there is a manifest. It takes no lock. Callers must not change the map.
func (d *Source) NamespaceLabels(name string) (labels map[string]string, known bool) {
	if o, ok := (*d.namespaces.Load())[name]; ok {
		return o.Labels, true
	}
	return map[string]string{corev1.LabelMetadataName: name}, false
}

// Reload makes Run read the directory at once, and take what it finds for intended: the ExtensionConfigs of an emptied
// directory do not stay registered for a while.
func (d *Source) Reload() { d.again.Notify() }

// Objects puts the objects of Hookgate's own kinds into g, with their verdicts.
func (d *Source) Objects(g *status.Gateway) {
	for _, of := range d.sets {
		if !of.InCluster {
			of.List(g)
		}
	}
}

// Warning says what is wrong with the directory: its Text is empty if all is well, and its Details are the first of the
// errors in the manifests, each with its file and line. Callers must not change them.
func (d *Source) Warning() status.Notice {
	if w := d.warning.Load(); w != nil {
		return *w
	}
	return status.Notice{}
}

// Check returns an error if the directory cannot be read.
func (d *Source) Check() error {
	err := manifest.CheckDir(&d.files, d.dir)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%w; name the directory that holds the manifests of ExtensionConfigs", err)
	case err != nil:
		return fmt.Errorf("%w; create the directory, or name the one that holds the manifests of ExtensionConfigs", err)
	}
	return nil
}

// Run reads the directory, makes the registry ready once every ExtensionConfig in it is served with the handlers in its
// status or has been tried, which takes no longer than a second, and keeps the registry as the directory
// is until ctx is done. It returns an error only if it cannot read the directory at the start. It may be called once.
func (d *Source) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer d.workers.stop()
	defer cancel()
	back := notify.NewSet[string]() // ExtensionConfigs whose server is there again
	d.workers.running.Go(func() { d.workers.reconciler.Watch(ctx, back.Add) })
	d.workers.running.Go(func() { _ = d.engine.Run(ctx) })
	if err := d.Check(); err != nil {
		return err
	}
	changes := newWatch(d.dir, d.logger) // before reading, so that no change is missed
	defer changes.close()

	first := &pass{done: make(chan struct{})}
	first.add() // for the reading
	d.records.read(d.engine)
	d.refresh(ctx, nil, first)
	first.over()
	if len(d.inventory.Of(extensionconfig.Kind))+len(d.inventory.Of(hookrule.Kind)) == 0 {
		d.logger.Warn("directory defines no ExtensionConfig yet", "dir", d.dir)
	}

	tried, late := first.done, time.After(d.patience)
	poll := time.NewTicker(d.reread)
	defer poll.Stop()
	var quiet <-chan time.Time // fires when the directory is to be read
	var firstEvent time.Time
	all := true // any file may have changed, whatever events there were
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tried:
			d.settle()
			tried, late = nil, nil
		case <-late:
			d.settle()
			tried, late = nil, nil
		case <-d.tracking.Changed():
			d.reportVerdicts()
			continue
		case <-back.C():
			d.workers.retry(back.Take())
			continue
		case <-changes.changes.C():
			if quiet == nil {
				firstEvent = time.Now()
			}
			quiet = time.After(min(d.debounce, max(0, d.maxDebounce-time.Since(firstEvent))))
			continue
		case <-d.again.C():
			d.confirmed, all = true, true
			quiet = time.After(0)
			continue
		case <-poll.C:
			d.records.read(d.engine)
			all = true
			if quiet == nil {
				quiet = time.After(0)
			}
			continue
		case <-quiet:
			quiet = nil
			changed := changes.take()
			if all {
				changed = nil
			}
			all = false
			read := d.refresh(ctx, changed, nil)
			// To watch a directory that cannot be read may block.
			if read && changes.renew() {
				read = d.refresh(ctx, nil, nil)
			}
			if !read {
				all = true
				firstEvent, quiet = time.Now(), time.After(d.maxDebounce)
			}
		}
	}
}

// settle makes the registry ready after the first attempts.
func (d *Source) settle() {
	d.registry.SetReady()
	d.settled = true
	d.reportVerdicts()
}

// reportVerdicts logs the verdicts on the policies, the rules and the chains. Before the first attempts are over, most
// of the handlers that they name are missing, and it logs nothing.
func (d *Source) reportVerdicts() {
	if !d.settled {
		return
	}
	for _, of := range d.sets {
		objects := d.inventory.Of(of.Name)
		of.Report(of.Verdicts(), func(name string) string { o := objects[name]; return o.String() })
	}
}

// pass counts the first attempts that are not over. A nil pass counts nothing.
type pass struct {
	left atomic.Int64
	done chan struct{} // closed when none is left
}

func (p *pass) add() {
	if p != nil {
		p.left.Add(1)
	}
}

func (p *pass) over() {
	if p != nil && p.left.Add(-1) == 0 {
		close(p.done)
	}
}

// refresh reads the directory and passes changes to the workers. It reports whether it could read. If changed is not
// nil, only the files of these names have changed, which are not many as a rule, so that the others are not read.
func (d *Source) refresh(ctx context.Context, changed map[string]struct{}, first *pass) bool {
	var before []manifest.File
	if changed != nil {
		before = d.read
	}
	manifests, err := manifest.RereadFiles(&d.files, d.dir, before, changed)
	if err != nil {
		// The directory may be about to be replaced. Nothing is removed because of that.
		gone := manifest.Problem{
			Place: manifest.Place{File: d.dir}, Err: err, Effect: "the last valid state stays in use",
		}
		d.report(append(slices.Clone(d.problems), gone))
		d.confirmed = false
		return false
	}
	d.read = manifests
	if d.manifests != nil &&
		slices.EqualFunc(manifests, d.manifests, func(a, b manifest.File) bool { return a.Equal(&b) }) {
		d.confirmed = false
		d.report(d.problems) // the directory may have been away in between
		return true
	}
	known := d.inventory
	if d.present == nil {
		known = manifest.Restore(d.valid.load(), d.decoder) // what was in effect before the start
	}
	next, problems := known.Next(manifests, d.decoder)
	if d.isEmptied(next) {
		return true
	}
	d.recall(next)
	d.manifests, d.inventory, d.problems = manifests, next, problems
	namespaces := next.Of(manifest.Namespace)
	d.namespaces.Store(&namespaces)
	if d.references != nil {
		d.references.Set(next.Definitions())
	}
	for _, of := range d.sets {
		of.Use(d.items(of.Name))
	}
	d.setClosures() // what has been corrected is in effect
	configs := next.Of(extensionconfig.Kind)
	extensions := make([]extensionconfig.Extension, 0, len(configs))
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		o := configs[name]
		x, err := d.sets.Policies().WithProtocol(*o.Extension)
		if err != nil { // it is called with JSON then
			d.problems = append(d.problems, manifest.Problem{
				Place: o.Place, Object: fmt.Sprintf("ExtensionConfig %q", name), Err: err,
			})
			x = *o.Extension
		}
		d.recalled(&x)
		extensions = append(extensions, x)
	}
	if served := d.workers.serve(extensions); served == len(extensions) && first != nil {
		d.settle() // before any is discovered, which takes long: discoveries compete for the processors
	}
	for i := range extensions {
		first.add()
		d.workers.set(ctx, &extensions[i], first.over)
	}
	d.workers.removeAll(ctx, slices.DeleteFunc(d.workers.names(), func(name string) bool {
		_, ok := configs[name]
		return ok
	}))
	d.awaitMistaken()
	d.valid.save(d.inventory.Valid())
	errs := d.report(d.problems)
	d.reportVerdicts()
	d.logger.Info("manifests read", "dir", d.dir, "extensionConfigs", len(configs),
		"extensionPolicies", len(next.Of(extensionpolicy.Kind)), "handlerChains", len(next.Of(handlerchain.Kind)),
		"hookRules", len(next.Of(hookrule.Kind)), "extensionRollouts", len(next.Of(rollout.Kind)),
		"namespaces", len(namespaces), "customResourceDefinitions", len(next.Of(manifest.Definition)), "errors", errs)
	return true
}

// isEmptied reports whether the directory has no ExtensionConfig any more, or, if it had HookRules alone, none of
// these, and no Reload has confirmed it: a mount that is lost and a tool that writes everything anew look like that. A
// directory that has no ExtensionConfig at the start is emptied if the state has some.
func (d *Source) isEmptied(next *manifest.Inventory) bool {
	kind, counted := extensionconfig.Kind, "extensionConfigs"
	had, has := len(d.inventory.Of(kind)), len(next.Named)
	if rules := len(d.inventory.Of(hookrule.Kind)); had == 0 && rules > 0 {
		kind, counted, had, has = hookrule.Kind, "hookRules", rules, has+len(next.Of(hookrule.Kind))
	}
	confirmed, effect := d.confirmed, "those that it defined before stay registered"
	d.confirmed = false
	atStart := d.present == nil && d.state != nil
	if atStart && len(next.Unreadable) == 0 {
		had, effect = len(d.state.found), "calls to all handlers of a hook fail"
	}
	emptied := had > 0 && has == 0
	unreadable := registry.Undiscovered{Unreadable: "the directory of manifests, which is empty", Default: hook.Fail}
	switch {
	case atStart && emptied && !confirmed:
		d.registry.SetUndiscovered([]registry.Undiscovered{unreadable})
	case atStart:
		d.registry.RemoveAll([]string{unreadable.Unreadable})
	}
	switch {
	case !emptied:
		return false
	case confirmed:
		d.logger.Warn("directory defines no "+kind+" any more: all are unregistered", "dir", d.dir, counted, had)
		return false
	}
	message := fmt.Sprintf("%s no longer defines %s: %s until SIGHUP confirms the removal", d.dir, kind, effect)
	if d.Warning().Text != message {
		d.logger.Error("directory is emptied", "problem", message, counted, had)
	}
	d.warning.Store(&status.Notice{Text: message})
	return true
}

// report logs the problems that were not there before, and returns how many are errors.
func (d *Source) report(problems []manifest.Problem) int {
	errs, mistakes := 0, []string(nil)
	reported := make(map[string]bool, len(problems))
	for i := range problems {
		p := &problems[i]
		level, message := slog.LevelError, "manifest is wrong"
		switch {
		case p.Deprecated:
			level, message = slog.LevelWarn, "manifest uses a deprecated hook version"
		case p.Warning:
			level, message = slog.LevelWarn, "manifest has something that is not used"
		default:
			errs++
			if errs <= limits.Problems {
				mistakes = append(mistakes, redact.Bounded(p.Error(), limits.ProblemBytes))
			}
		}
		attributes := []any{"problem", p.Error()}
		if p.Effect != "" {
			attributes = append(attributes, "effect", p.Effect)
		}
		key := p.Error() + "\n" + p.Effect
		if !d.reported[key] && !reported[key] {
			d.logger.Log(context.Background(), level, message, attributes...)
		}
		reported[key] = true
	}
	d.reported = reported
	w := status.Notice{Details: mistakes}
	switch {
	case errs > limits.Problems:
		w.Text = fmt.Sprintf("%d errors, of which these are the first; the log has all of them", errs)
	case errs > 0:
		w.Text = text.Plural(errs, "error")
	}
	d.warning.Store(&w)
	if d.observer != nil {
		d.observer.ManifestErrors(errs)
	}
	return errs
}
