// Package wholefile writes files that are as they were or complete whenever somebody
// looks, be it after a crash.
package wholefile
