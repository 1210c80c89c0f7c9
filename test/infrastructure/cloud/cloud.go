// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	inmemoryruntime "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	inmemoryserver "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

// What a cloud has at most.
const (
	maxBody      = 2 << 20
	maxNetworks  = 128
	maxMachines  = 4096
	maxGroups    = 512
	maxInstances = 1000
	maxRules     = 32
	maxTags      = 32
	maxDomains   = 32
	maxText      = 1024
	maxEvents    = 20_000
	maxNames     = 100_000 // that are remembered to count repetitions
	maxRequests  = 256     // at a time
)

const (
	// The API servers have ports below those that the kernel gives to connections, and between those of Cluster API's
	// own in-memory provider and those that the end-to-end suite takes.
	minPort, maxPort = 21000, 21999
	// defaultHost is where API servers are said to be.
	defaultHost = "127.0.0.1"
	// tick is how often the cloud looks at what it has under way.
	tick = 50 * time.Millisecond
	// housekeeping is how often it does what controllers of a cluster would do.
	housekeeping = 500 * time.Millisecond
	// defaultJoinTimeout is short beside kubeadm's five minutes: tests wait for it.
	defaultJoinTimeout = 10 * time.Second
)

// Config has the parts of a cloud that differ. The zero value is usable.
type Config struct {
	// Token, if set, is what requests must have as their bearer token.
	Token string
	// Host is the address of this host that clients of API servers use; 127.0.0.1 by default.
	Host string
	// JoinTimeout is how long a machine tries to join; 10 s by default.
	JoinTimeout time.Duration
	// Logger defaults to none.
	Logger *slog.Logger
}

// Cloud has networks, machines and groups. New makes one; Close ends it.
type Cloud struct {
	config  Config
	log     *slog.Logger
	manager inmemoryruntime.Manager
	mux     *inmemoryserver.WorkloadClustersMux
	routes  *http.ServeMux
	slots   chan struct{}
	poke    chan struct{}
	stop    context.CancelFunc
	done    chan struct{}

	mu       sync.Mutex // of everything below
	networks map[string]*network
	machines map[string]*machine
	groups   map[string]*group
	// order has the machines in the order in which they were made.
	order      []*machine
	tokens     map[string]string // of POST /machines; the machine's ID
	made       map[string]int    // machines by key, and by network and name
	requests   map[string]int
	tallies    map[string]*api.Tally
	events     []api.Event
	sequence   int
	serial     int // of addresses and failure domains
	faults     faults
	houseClean time.Time
}

// New starts a cloud. The caller serves Handler, and calls Close.
func New(config Config) (*Cloud, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, storagev1.AddToScheme, policyv1.AddToScheme,
		apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	if config.JoinTimeout == 0 {
		config.JoinTimeout = defaultJoinTimeout
	}
	if config.Host == "" {
		config.Host = defaultHost
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	manager := inmemoryruntime.NewManager(scheme)
	if err := manager.Start(ctx); err != nil {
		stop()
		return nil, fmt.Errorf("start the clusters' store: %w", err)
	}
	ports := inmemoryserver.CustomPorts{MinPort: minPort, MaxPort: maxPort, DebugPort: 0}
	mux, err := inmemoryserver.NewWorkloadClustersMux(manager, config.Host, ports)
	if err != nil {
		stop()
		return nil, fmt.Errorf("start the clusters' server: %w", err)
	}
	c := &Cloud{
		config: config, log: config.Logger, manager: manager, mux: mux, stop: stop,
		slots: make(chan struct{}, maxRequests), poke: make(chan struct{}, 1), done: make(chan struct{}),
		networks: map[string]*network{}, machines: map[string]*machine{}, groups: map[string]*group{},
		tokens: map[string]string{}, made: map[string]int{}, requests: map[string]int{},
		tallies: map[string]*api.Tally{kindNetwork: {}, kindMachine: {}, kindGroup: {}},
		faults:  newFaults(),
	}
	c.routes = c.newRoutes()
	go c.run(ctx)
	return c, nil
}

// Close stops the API servers and lets requests that hang go on. Nothing is left.
func (c *Cloud) Close() error {
	c.stop()
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.clear()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var failures []error
	for _, n := range c.networks {
		failures = append(failures, c.dropNetwork(n))
	}
	if err := c.mux.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		failures = append(failures, err) // after the deadline only watches are left, and they end with the process
	}
	return errors.Join(failures...)
}

// run carries on with what is under way until ctx ends.
func (c *Cloud) run(ctx context.Context) {
	defer close(c.done)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-c.poke:
		}
		c.mu.Lock()
		c.step(ctx, time.Now())
		c.mu.Unlock()
	}
}

// step carries on with everything that is under way, in the order in which it was asked for.
func (c *Cloud) step(ctx context.Context, now time.Time) {
	for _, n := range c.networks {
		c.stepNetwork(n, now)
	}
	for _, m := range slices.Clone(c.order) {
		c.stepMachine(ctx, m, now)
	}
	for _, g := range c.groups {
		c.stepGroup(ctx, g, now)
	}
	if now.Sub(c.houseClean) < housekeeping {
		return
	}
	c.houseClean = now
	for _, n := range c.networks {
		if n.initialized {
			c.keepHouse(ctx, n)
		}
	}
}

// wake makes run look now.
func (c *Cloud) wake() {
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

// newID returns the cloud's own name for a thing.
func newID(prefix string) string {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	return prefix + "-" + hex.EncodeToString(random)
}
