# gnuplot 001_figure_8.gp makes 001_figure_8.svg.
set encoding utf8
set terminal svg size 860,420 noenhanced font 'sans,11' background 'white'
set output '001_figure_8.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set logscale x 2
set xlabel "input"
set format x '%.0b %BB'
set xtics rotate by -40
set key outside right top
set title "Figures 8 and 9: AES-256 encryption by the size of the input"
set format y '%.0s %cs'
plot '001_figure_8.dat' using 1:3 with linespoints lt 1 title "article's kernel", \
  '001_figure_8.dat' using 1:4 with linespoints lt 2 title "article's with copies", \
  '001_figure_8.dat' using 1:5 with linespoints lt 3 title "plain code (tables), one thread", \
  '001_figure_8.dat' using 1:6 with linespoints lt 4 title "plain code (tables), all threads", \
  '001_figure_8.dat' using 1:7 with linespoints lt 5 title "library, one thread", \
  '001_figure_8.dat' using 1:8 with linespoints lt 6 title "library, all threads", \
  '001_figure_8.dat' using 1:9 with linespoints lt 7 title "GPU kernels", \
  '001_figure_8.dat' using 1:10 with linespoints lt 8 title "GPU with copies"
