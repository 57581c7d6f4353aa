/* Stand-in for what menuconfig writes; tests give its values by -D. */
