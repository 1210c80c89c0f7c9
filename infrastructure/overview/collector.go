// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
)

// Description is what the documentation says about a metric.
type Description struct {
	Name, Help string
	Labels     []string
}

// Descriptions are the metrics of a Collector.
var Descriptions = [...]Description{
	{"hookgate_infrastructure_objects", "Number of objects of the infrastructure provider. The label state is " +
		`"Ready" (the condition Ready is true), "Paused" (the object is paused) or "NotReady" (any other object).`,
		[]string{"kind", "infrastructure_class", "state"}},
	{"hookgate_infrastructure_not_ready_since_timestamp_seconds", "Time, in seconds since the epoch, at which the " +
		"object that has been unready longest became unready. Paused objects do not count.",
		[]string{"kind", "infrastructure_class"}},
	{"hookgate_infrastructure_failing_objects", "Number of objects about which the last call to the extension failed.",
		[]string{"kind", "infrastructure_class", "hook"}},
	{"hookgate_infrastructure_instances", "Number of instances of all Clusters of a class. " +
		`The label source is "Backend" (the instances that exist, according to the extension's last answers) or "Objects" ` +
		`(the instances that objects represent).`,
		[]string{"infrastructure_class", "source"}},
	{"hookgate_infrastructure_instances_differ_since_timestamp_seconds", "Time, in seconds since the epoch, since " +
		"which the backend has had more or fewer instances than there are objects, or than a MachinePool has replicas, as " +
		"this process saw it. If there are differences for several Clusters or pools, the earliest time " +
		"counts. Paused objects do not count.", []string{"kind", "infrastructure_class"}},
}

// other is the class of the objects of all classes for which there is no room.
const other = "Other"

// Collector is a collector of metrics about objects. It is safe for concurrent use. Series are bounded by the kinds and
// the number of classes.
type Collector struct {
	read         func() (*Objects, error)
	now          func() time.Time
	descriptions [len(Descriptions)]*prometheus.Desc

	mu      sync.Mutex
	differs map[place]time.Time // since when the instances of a Cluster or pool differ
}

type place struct{ kind, namespace, name string }

// NewCollector returns a Collector. read returns the objects, of which nothing is kept.
func NewCollector(read func() (*Objects, error), now func() time.Time) *Collector {
	c := &Collector{read: read, now: now, differs: map[place]time.Time{}}
	for i := range Descriptions {
		d := &Descriptions[i]
		c.descriptions[i] = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descriptions {
		to <- d
	}
}

// figures are the values of the series, by the values of their labels.
type figures struct {
	objects   map[[3]string]int
	notReady  map[[2]string]time.Time
	failing   map[[3]string]int
	instances map[[2]string]int
	differ    map[[2]string]time.Time
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	objects, err := c.read()
	if err != nil {
		to <- prometheus.NewInvalidMetric(c.descriptions[0], err)
		return
	}
	f := c.count(objects.Summary(c.now()))
	gauge := func(i int, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(c.descriptions[i], prometheus.GaugeValue, value, labels...)
	}
	for labels, n := range f.objects {
		gauge(0, float64(n), labels[:]...)
	}
	for labels, t := range f.notReady {
		gauge(1, float64(t.Unix()), labels[:]...)
	}
	for labels, n := range f.failing {
		gauge(2, float64(n), labels[:]...)
	}
	for labels, n := range f.instances {
		gauge(3, float64(n), labels[:]...)
	}
	for labels, t := range f.differ {
		gauge(4, float64(t.Unix()), labels[:]...)
	}
}

// count returns the values of the series, and remembers which Clusters and pools have other instances than they say.
func (c *Collector) count(s *status.Infrastructure) *figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &figures{
		map[[3]string]int{}, map[[2]string]time.Time{}, map[[3]string]int{}, map[[2]string]int{}, map[[2]string]time.Time{},
	}
	classes, differs := map[string]bool{}, map[place]time.Time{}
	for _, k := range []struct {
		kind string
		rows []status.InfrastructureObject
	}{
		{infrav1.HookgateClusterKind, s.Clusters}, {infrav1.HookgateMachinePoolKind, s.Pools},
		{infrav1.HookgateMachineKind, s.Machines},
	} {
		for i := range k.rows {
			o := &k.rows[i]
			class := o.Class
			if !classes[class] && len(classes) >= limits.InfrastructureClasses {
				class = other
			}
			classes[class] = true
			f.add(k.kind, class, o)
			if k.kind == infrav1.HookgateMachineKind || o.State == infrav1.PausedReason || !o.Differs() {
				continue
			}
			at := place{k.kind, o.Namespace, o.Name}
			since, known := c.differs[at]
			if !known {
				since = s.Now
			}
			differs[at] = since
			earliest(f.differ, [2]string{k.kind, class}, since)
		}
	}
	c.differs = differs
	return f
}

// add counts an object of a kind and a class.
func (f *figures) add(kind, class string, o *status.InfrastructureObject) {
	state := "NotReady"
	switch o.State {
	case infrav1.ReadyReason, infrav1.PausedReason:
		state = o.State
	default:
		if o.Since != nil {
			earliest(f.notReady, [2]string{kind, class}, *o.Since)
		}
	}
	f.objects[[3]string{kind, class, state}]++
	if o.Failure != nil {
		f.failing[[3]string{kind, class, o.Failure.Hook}]++
	}
	if kind == infrav1.HookgateClusterKind {
		f.instances[[2]string{class, "Backend"}] += o.Instances
		f.instances[[2]string{class, "Objects"}] += o.Objects
	}
}

func earliest(all map[[2]string]time.Time, labels [2]string, t time.Time) {
	if first, ok := all[labels]; !ok || t.Before(first) {
		all[labels] = t
	}
}
