// Package npmcache gives the tests programs and libraries of npm: a server to talk to, and another implementation to share
// locks with.
//
// What is installed stays in a folder per set of packages and versions, below the user's cache directory; from then on
// nothing is fetched. Concurrent processes install once. No install script of any package runs.
//
// Environment:
//
//	XDG_CACHE_HOME  where the folder holdfast/npm is made (default ~/.cache; os.UserCacheDir has the other systems' rules)
//	npm_config_...  npm's own settings, such as npm_config_registry
package npmcache
