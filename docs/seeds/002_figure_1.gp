# gnuplot 002_figure_1.gp makes 002_figure_1.svg.
set terminal svg size 900,600
set output '002_figure_1.svg'
set datafile missing '?'
set title "Figure 1: AES-CTR by the number of threads, a block each"
set xlabel 'threads'
set ylabel 'bits_per_second'
set key left top
set logscale xy
plot '002_figure_1.dat' using 1:3 with linespoints title "paper's way, kernel, Mbit/s", \
  '002_figure_1.dat' using 1:4 with linespoints title "paper's way with copies, Mbit/s", \
  '002_figure_1.dat' using 1:5 with linespoints title "plain code (tables), one thread, Mbit/s", \
  '002_figure_1.dat' using 1:6 with linespoints title "library, one thread, Mbit/s", \
  '002_figure_1.dat' using 1:7 with linespoints title "library, all threads, messages of 64 KiB, Mbit/s", \
  '002_figure_1.dat' using 1:8 with linespoints title "GPU kernels, Mbit/s", \
  '002_figure_1.dat' using 1:9 with linespoints title "GPU with copies, Mbit/s"
