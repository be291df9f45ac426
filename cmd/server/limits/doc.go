// Package limits bounds what a server works on at the same time: FairQueue shares seats among clients by the time that
// their requests take, Connections bounds the open connections.
package limits
